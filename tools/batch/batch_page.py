# SPDX-License-Identifier: BSD-2-Clause
"""The page of hybridctl batch: who ran when, beside whom, and why then. In the style of hybridctl report."""
import shlex

from report_charts import duration, e, figure, legend, svg, table
from report_style import SCRIPT, STYLE

CLASSES = {'unknown': 'not known', 'cpu': 'CPU-bound', 'bandwidth': 'bandwidth-sensitive', 'latency': 'latency-sensitive'}
OWN_STYLE = '''
.batch .plot{height:auto}.batch .plot>svg{position:absolute;inset:0}
.lane{position:relative;height:26px;border-bottom:1px solid var(--line)}
.job{position:absolute;top:3px;bottom:3px;border-radius:3px;min-width:2px;overflow:hidden;white-space:nowrap;
font-size:.78em;line-height:20px;padding-left:4px;color:#fff}
.job.c-unknown{color:var(--ink)}.job.failed{outline:2px solid var(--warn);outline-offset:-2px}
.wide td:nth-child(-n+5){white-space:nowrap}.wide td:nth-child(n+8){max-width:34em}
'''


def lanes(spans):
    """[(start event, end event)] to [[span]]: each in the first lane that is free then."""
    out = []
    for span in sorted(spans, key=lambda s: s[0]['time']):
        for lane in out:
            if lane[-1][1]['time'] <= span[0]['time']:
                lane.append(span)
                break
        else:
            out.append([span])
    return out


def beside(span, spans):
    """{name: seconds together}"""
    out = {}
    for other in spans:
        if other is not span:
            both = min(span[1]['time'], other[1]['time']) - max(span[0]['time'], other[0]['time'])
            if both > 0.001:
                name = other[1].get('name', '?')
                out[name] = out.get(name, 0.0) + both
    return out


def status_of(end):
    status = end.get('status', 0)
    return 'signal %d' % -status if status < 0 else 'not run' if 'seconds' not in end else str(status)


def chart(jobs, ran, facts, begin, end):
    span, rows = max(end - begin, 1e-6), []
    for lane in lanes(ran):
        cells = []
        for start, stop in lane:
            job = jobs[start['job']]
            f = facts.get(job.key)
            cls = f.cls if f and f.cls in CLASSES else 'unknown'
            cells.append('<span class="job c-%s%s" style="left:%.3f%%;width:%.3f%%" title="%s">%s</span>' % (
                cls, ' failed' if stop.get('status') else '', 100 * (start['time'] - begin) / span,
                100 * max(0.0, stop['time'] - start['time']) / span,
                e('%s: %s, %s' % (job.name, shlex.join(job.argv), duration(stop['time'] - start['time']))), e(job.name)))
        rows.append('<div class="lane">%s</div>' % ''.join(cells))
    labels = ''.join('<span style="bottom:%.2f%%">slot %d</span>' % (100 * (len(rows) - i - 0.5) / len(rows), i + 1)
                     for i in range(len(rows)))
    seen = {facts[jobs[s['job']].key].cls for s, _ in ran if jobs[s['job']].key in facts}
    keys = [(CLASSES[c], 'c-' + c) for c in CLASSES if c in seen or c == 'unknown']
    numbers = table(['from', 'job', 'time'], [(s['time'] - begin, [duration(s['time'] - begin), jobs[s['job']].name,
                                                                    duration(t['time'] - s['time'])]) for s, t in
                                              sorted(ran, key=lambda r: r[0]['time'])])
    drawing = figure('Who ran when', 'each row is a slot; a red frame: it failed', svg('', '') + ''.join(rows), 0, span, labels,
                     legend(keys), numbers)
    return drawing.replace('class="chart"', 'class="chart batch"', 1)


def details(jobs, ran, facts, begin):
    head = ['job', 'from', 'time', 'waited', 'status', 'class', 'EBW DRAM, PM', 'beside', 'why then', 'command']
    out = []
    for span in sorted(ran, key=lambda s: s[0]['time']):
        start, stop = span
        job = jobs[start['job']]
        f = facts.get(job.key)
        both = beside(span, ran)
        cells = [job.name, duration(start['time'] - begin), duration(stop['time'] - start['time']),
                 duration(stop['waited']) if stop.get('waited') else '-', status_of(stop),
                 CLASSES.get(f.cls, 'not known') + (', writes much' if f.writes else '') if f else 'not known',
                 '%.3g, %.3g' % (f.ebw_d, f.ebw_nv) if f and f.counted else 'not counted',
                 ', '.join('%s %s' % (n, duration(s)) for n, s in sorted(both.items(), key=lambda b: -b[1])) or '-',
                 str(start.get('why', '')), shlex.join(job.argv)]
        out.append('<tr>%s</tr>' % ''.join('<td>%s</td>' % e(c) for c in cells))
    return ('<div class="box wide"><div class="scroll" style="max-height:none"><table><thead><tr>%s</tr></thead><tbody>%s'
            '</tbody></table></div></div>') % (''.join('<th scope="col">%s</th>' % e(h) for h in head), ''.join(out))


def tiles(jobs, spans, ran, begin, end):
    busy = sum(t['time'] - s['time'] for s, t in ran)
    failed = sum(1 for _, t in spans if t.get('status'))
    values = [(duration(end - begin), 'from the first start to the last end'), (str(len(ran)), 'runs of %d jobs' % len(jobs)),
              (str(failed), 'failed or were not run'),
              ('%.3g' % (busy / (end - begin)) if end > begin else '-', 'ran at a time, on average')]
    return '<div class="tiles">%s</div>' % ''.join('<div class="tile"><b>%s</b><span>%s</span></div>' % (e(v), e(t))
                                                   for v, t in values)


def page(o, jobs, spans, facts):
    """`spans`: [(start event, end event)] of the journal; `facts`: {job key: Facts}."""
    ran = [s for s in spans if 'seconds' in s[1]]
    begin = min([s['time'] for s, _ in ran] or [0.0])
    end = max([t['time'] for _, t in ran] or [0.0])
    body = tiles(jobs, spans, ran, begin, end)
    if ran:
        body += chart(jobs, ran, facts, begin, end) + '<h3>The jobs in the order of their start</h3>' + details(
            jobs, ran, facts, begin)
    skipped = [jobs[t['job']].name for _, t in spans if 'seconds' not in t]
    if skipped:
        body += '<p>Not run: %s.</p>' % e(', '.join(skipped))
    title = 'Batch %s' % o.jobfile
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        'style-src \'unsafe-inline\'; script-src \'unsafe-inline\'">'
        '<title>%s</title><style>%s%s</style></head><body><main><h1>%s <span class="note">%d at a time</span></h1>%s'
        '<p class="note">EBW: effective bandwidth, the part of its time for which a job keeps a memory busy, with writes '
        'and PM counted by their latencies (paper 000). The order: jobs of which nothing was known; then those that need little '
        'bandwidth; then in turn the largest need of DRAM, the smallest and the largest of PM, the smallest of DRAM. '
        'None that writes much to PM beside one that needs the bandwidth of DRAM, where that could be avoided (004).</p>'
        '</main><script>%s</script></body></html>\n') % (e(title), STYLE, OWN_STYLE, e(title), o.slots, body, SCRIPT)
