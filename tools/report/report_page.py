# SPDX-License-Identifier: BSD-2-Clause
"""The page of hybridctl report: one HTML file, nothing from outside, one section a process."""
import report_data as data
from report_charts import (DOMAIN, HEAT, TIER, bars, count, curves, duration, e, page_map, percent,
                           ramp, rate, size, stacked, strip, table, times, up_and_down)
from report_style import SCRIPT, STYLE
from report_trace import TIERS, number, section, text

CLASS_NAMES = {
    'unknown': 'not known', 'cpu': 'CPU-bound', 'bandwidth': 'bandwidth-sensitive',
    'latency': 'latency-sensitive'
}


def tile(value, label):
    return '<div class="tile"><b>%s</b><span>%s</span></div>' % (e(value), e(label))


def some(v, form):
    return 'not known' if v is None else form(v)


def peak(run, i):
    tiers = section(run.stats, 'tiers')
    told = number(section(tiers, TIERS[i]), 'peak')
    return max([told] + [t.used[i] for t in run.ticks])


def tiles(run):
    t, gain = run.last, data.Gain(run)
    out = [
        tile(duration(run.end_ns / 1e9), 'seen' +
             (', virtual time' if text(run.facts, 'clock') == 'virtual' else ''))
    ] if run.has_trace else []
    cls, share = data.main_class(run)
    if cls is None:
        cls, share = text(run.stats, 'class'), None
    out.append(
        tile(CLASS_NAMES.get(cls, cls),
             'class' if share is None else 'class, %s of the time' % percent(share)))
    out += [tile(size(peak(run, 0)), 'DRAM at most'), tile(size(peak(run, 1)), 'PM at most')]
    if t and (t.up or t.down):
        out.append(tile(size(t.up + t.down), 'moved: %s up, %s down' % (size(t.up), size(t.down))))
    writes, reads = data.share_on_dram(run, 'writes'), data.share_on_dram(run, 'reads', 'writes')
    if writes is not None:
        out.append(tile(percent(writes), 'of what was written back went to DRAM'))
    if reads is not None:
        out.append(tile(percent(reads), 'of all memory traffic was to DRAM'))
    if gain.known:
        out.append(tile(percent(gain.of_pm), 'of the time on PM alone was spared (predicted)'))
    return '<div class="tiles">%s</div>' % ''.join(out)


def gain_part(run):
    gain, told = data.Gain(run), section(run.stats, 'classification')
    if not gain.known:
        why = text(run.counters, 'why') or text(told, 'why') or 'no counts were taken'
        return ('<div class="box"><p><b>What it gained</b> is not known: there were no counts of '
                'memory traffic (%s).</p></div>') % e(why)
    picture = bars('What it gained', 'time of the same work, predicted by the slowdown model',
                   [('all on DRAM', 'dram', gain.dram), ('as it lay', 'third', gain.placed),
                    ('all on PM', 'pm', gain.pm)], duration)
    possible = gain.of_possible
    said = ('%s less than with all data on PM' %
            percent(gain.of_pm) if gain.of_pm >= 0 else '%s more than with all data on PM' %
            percent(-gain.of_pm))
    if possible is not None:
        said += ', %s of what DRAM can bring at all' % percent(possible)
    return picture.replace(
        '</figure>',
        '<p>%s.</p><p class="note">How: from the counts of each window libhybrid finds the '
        'work behind it (computing, lines, how much of a miss is waited for), and the time of '
        'that work for any placement with the figures of the machine (%s). The time of '
        '&ldquo;as it lay&rdquo; is the measured one, the others are the measured one times the '
        'ratio of the predictions. What moving and counting cost is in all three. Counts: %s.</p>'
        '</figure>'
        % (e(said), e(text(run.counters, 'figures') or text(told, 'machine') or 'unknown'),
           e(text(run.counters, 'source') or text(told, 'counters') or 'unknown')))


def memory_charts(run, end):
    begin = 0
    limit = min((v for v in (t.limit[0] for t in run.ticks) if v), default=0)
    series = [('DRAM', 'dram', data.curve(run, lambda t: t.used[0])),
              ('PM', 'pm', data.curve(run, lambda t: t.used[1]))]
    most = max(v for _, _, s in series for _, v in s)
    if limit and limit <= 3 * max(most, 1):
        series.append(('DRAM limit', 'faint', data.curve(run, lambda t: min(t.limit[0], 3 * most))))
    out = [curves('Memory on each tier', '', series, begin, end, size, 1024, step=True)]
    wishes = [('wished for', 'third', data.curve(run, lambda t: t.wish)),
              ('asked to give up', 'fourth', data.curve(run, lambda t: t.asked))]
    if any(v for _, _, s in wishes for _, v in s):
        out.append(
            curves('DRAM wished for, and asked for by others', 'registry', wishes, begin, end, size,
                   1024, step=True))
    ups, downs = data.buckets(run, lambda t: t.up), data.buckets(run, lambda t: t.down)
    out.append(
        up_and_down('Pages moved', 'to DRAM above, to PM below', ('to DRAM', 'to PM'), ups, downs,
                    begin, end, rate))
    return out


def bandwidth(run, what, end):
    begin = 0
    series = []
    for tier, name in (('dram', 'DRAM'), ('pm', 'PM')):
        b = data.buckets(run, lambda t, tier=tier: data.traffic(t, what, tier))
        series.append((name, tier, [(a, v) for a, _, v in b]))
    if not any(v for _, _, s in series for _, v in s):
        return ''
    return curves('Lines %s' % ('read' if what == 'reads' else 'written back'),
                  'last-level misses of 64 bytes' if what == 'reads' else '64 bytes each', series,
                  begin, end, rate, 1024, step=True)


def class_charts(run, end):
    begin = 0
    out = [strip('Class', 'as it was acted on', data.phases(run), CLASS_NAMES, begin, end)]
    pm = data.ratio_curve(run, lambda t: t.predicted[2], lambda t: t.predicted[0])
    placed = data.ratio_curve(run, lambda t: t.predicted[1], lambda t: t.predicted[0])
    out.append(
        curves('Slowdown against all data on DRAM', 'predicted', [('all on PM', 'pm', pm),
                                                                  ('as it lay', 'third', placed)],
               begin, end, times, least=1))
    sure = [(x, v / 1000) for x, v in data.curve(run, lambda t: t.confidence)]
    if any(v for _, v in sure):
        out.append(
            curves('Confidence in the class found', '', [('confidence', 'fourth', sure)], begin,
                   end, times, least=1))
    stall = data.ratio_curve(run, lambda t: t.sums.get('stall-ns', 0) + t.sums.get('wait-ns', 0),
                             lambda t: t.sums.get('busy-ns', 0))
    if any(v for _, v in stall):
        out.append(
            curves('Share of the time that threads waited for memory', '',
                   [('waiting', 'third', [(x, min(v, 1)) for x, v in stall])], begin, end, percent,
                   least=1))
    return out


def thread_chart(run, end):
    t = [('threads', 'third', data.known_curve(run, lambda t: t.threads)),
         ('running at a time', 'fourth', data.curve(run, lambda t: t.running / 1000))]
    cpus = run.last.cpus
    if any(x.held or x.cap for x in run.ticks):
        t.append(('allowed at a time', 'pm', data.curve(run, lambda x: x.held or x.cap or cpus)))
    most = max((v for _, _, s in t for _, v in s), default=0)
    if cpus and cpus <= 4 * max(most, 1):
        t.append(('CPUs', 'faint', data.known_curve(run, lambda x: x.cpus)))
    if len(t) == 2 and most <= 1:
        return ''
    return curves('Threads', '', t, 0, end, count, step=True)


def address_labels(maps):
    parts = len(maps.spans)
    return (
        '<span style="bottom:97%%">%s</span><span style="bottom:50%%">%s</span><span '
        'style="bottom:3%%">0</span>'
        % (e(size(maps.pages * 4096)), e(size(maps.pages * 2048))), 'by address, %s in %s' %
        (size(maps.pages * 4096), 'one piece' if parts == 1 else '%d pieces' % parts))


def map_table(maps, value, names):
    """How much of the footprint had which value, over time."""
    cells = maps.cells(value)
    rows = []
    for c, column in enumerate(cells):
        seen = [v for v in column if v is not None]
        when = maps.end / 1e9 * c / max(1, maps.columns)
        rows.append((when, [duration(when)] + [
            percent(sum(1 for v in seen if test(v)) / len(seen)) if seen else ''
            for _, test in names
        ]))
    return table(['time'] + [n for n, _ in names], rows)


def page_charts(run):
    maps = data.Maps(run)
    if not maps.passes or not maps.pages:
        return []
    begin, end = 0, max(maps.end / 1e9, 1e-9)
    labels, where = address_labels(maps)
    sixteen = {mode: {p: ramp(HEAT[p], 16) for p in HEAT}[mode] for mode in ('light', 'dark')}
    out = [
        page_map(
            'Page heat', where, maps.cells(data.heat), sixteen, [('never seen in use', 0),
                                                                 ('at times', 5), ('often', 10),
                                                                 ('always', 15)], begin, end,
            labels,
            map_table(maps, data.heat, [('in use at times', lambda v: 0 < v < 8),
                                        ('hot', lambda v: v >= 8)])),
        page_map(
            'Write domain', 'what each page was in the last eight passes', maps.cells(data.domain),
            DOMAIN, [('cold', 0), ('read', 1), ('written at times', 2), ('written', 3),
                     ('written often', 4)], begin, end, labels,
            map_table(maps, data.domain, [('read', lambda v: v == 1),
                                          ('written at times', lambda v: v == 2),
                                          ('written', lambda v: v == 3),
                                          ('written often', lambda v: v == 4)])),
        page_map('Where the pages were', where, maps.cells(data.on_pm),
                 {p: ramp(TIER[p], 16)
                  for p in TIER}, [('DRAM', 0), ('PM', 15)], begin, end, labels,
                 map_table(maps, data.on_pm, [('DRAM', lambda v: v < 8), ('PM', lambda v: v >= 8)]))
    ]
    passes = data.thin(run.passes, data.POINTS)
    worth = data.HOT_BANDS + data.WRITTEN_BANDS
    series = [(name, cls, [(p.ns / 1e9, 4096 * data.band_sum(p, tier, bands)) for p in passes])
              for name, cls, tier, bands in (('hot or written, DRAM', 'dram', 0,
                                              worth), ('hot or written, PM', 'pm', 1, worth),
                                             ('rest, DRAM', 'dram-cold', 0,
                                              (0, )), ('rest, PM', 'pm-cold', 1, (0, )))]
    out.append(
        stacked('Pages by what they are like, and where', 'hot, or predicted to be written', series,
                0, end, size, 1024))
    observed = sum(p.observed for p in run.passes)
    right = sum(min(p.right, p.observed) for p in run.passes)
    if observed:
        out.append(
            '<div class="box"><p><b>Prediction of writes</b>: %s of the pages did in the next '
            'pass what was '
            'predicted (paper 002: 96 %% with a window of 8).</p><p class="note">%s passes; %s '
            'pages looked at, %s of '
            'them written in the last pass. Watched by: %s%s; moved by: %s.</p></div>' %
            (percent(right / observed), count(run.passes[-1].number or len(run.passes)),
             count(run.passes[-1].tracked), count(
                 run.passes[-1].written), e(text(run.migration, 'writes') or 'nothing'),
             e(' and ' + text(run.migration, 'reads') if text(run.migration, 'reads') not in
               ('', text(run.migration, 'writes')) else ''),
             e(text(run.migration, 'way') or 'nothing')))
    if run.last and run.last.found_pages:
        out.append(others_note(run.last))
    if run.last and run.last.tasks:
        out.append(tasks_note(run.last))
    return out


def tasks_note(t):
    return ('<p class="note">OpenMP tasks: %s with dependences were watched; for %s of them data came '
            'to DRAM before they began (%s in all); %s ran on such data.</p>' %
            (count(t.tasks), count(t.task_stages), size(t.task_staged), count(t.task_hits)))


def others_note(t):
    """Linux' own tiering and the like, beside ours."""
    rests = '; moves rested %s times for that' % count(t.truces) if t.truces else ''
    return '<p class="note">Others moved %s pages that were found so, %s of them undoing moves%s.</p>' % (
        count(t.found_pages), count(t.undone_pages), rests)


def moves_part(run):
    """Why there are no maps, if there are none."""
    if not run.has_trace or any(p.bins for p in run.passes):
        return ''
    why = text(run.migration, 'why') or {
        'off': 'HYBRID_MIGRATE=off',
        'idle': 'there was nothing to watch',
    }.get(text(run.migration, 'state'), 'the run ended before the first look')
    return '<p class="sub">No map of pages: they were not watched (%s).</p>' % e(why)


def cost_part(run):
    t = run.last
    if t is None or not run.end_ns:
        return ''
    parts = [('counting and classing', t.class_ns), ('this trace', t.trace_ns),
             ('looking at pages', t.look_ns), ('moving pages', t.move_ns)]
    rows = [(None, [n, duration(v / 1e9)]) for n, v in parts if v]
    if not rows:
        return ''
    note = ''
    if text(run.facts, 'clock') == 'virtual':
        note = (
            '<p class="note">On the emulated machine counting and tracing are real time, of which '
            'its clock knows nothing.</p>')
    return '<h3>What libhybrid itself took</h3><div class="box">%s%s</div>' % (table(
        ['what', 'time of one CPU'], rows), note)


def settings_part(run):
    if not run.settings:
        return ''
    chosen = [(None, s) for s in run.settings if s[2] != 'default']
    rest = [(None, s[:2]) for s in run.settings if s[2] == 'default']
    out = ['<h3>Settings</h3><div class="box">']
    out.append(
        all_rows(['setting', 'value', 'from'], chosen
                 ) if chosen else '<p>All settings were defaults.</p>')
    out.append('<details><summary>%d more, at their defaults</summary>%s</details></div>' %
               (len(rest), all_rows(['setting', 'value'], rest)))
    return ''.join(out)


def all_rows(head, rows):
    """Not thinned, as the table of a curve is."""
    frame = '<div class="scroll"><table><thead><tr>%s</tr></thead><tbody>%s</tbody></table></div>'
    return frame % (
        ''.join('<th scope="col">%s</th>' % e(h)
                for h in head), ''.join('<tr>%s</tr>' % ''.join('<td>%s</td>' % e(c) for c in cells)
                                        for _, cells in rows))


def warnings_part(run):
    lines = ['%s: %s' % (duration(ns / 1e9), message) for ns, message in run.warnings]
    told = run.stats.get('warnings')
    if not lines and isinstance(told, list):
        lines = [text({'x': w}, 'x') for w in told[:100]]
    if run.has_trace and not run.complete:
        lines.append(
            'The trace has no end: the program was killed, or still runs. What follows the last '
            'sample is not known.'
        )
    if run.bad_lines:
        lines.append('%d lines of the trace cannot be read.' % run.bad_lines)
    return '<h3>Warnings</h3><div class="box warn"><ul>%s</ul></div>' % ''.join(
        '<li>%s</li>' % e(x) for x in lines) if lines else ''


def stats_part(run):
    if not run.stats:
        return ''
    tiers = section(run.stats, 'tiers')
    fields = ('peak', 'limit', 'resident', 'heap_live', 'heap_free', 'mapped', 'large_blocks',
              'mappings', 'turned_away')
    rows = []
    for f in fields:
        form = count if f in ('large_blocks', 'mappings',
                              'turned_away') else (lambda v: 'none' if v > 1 << 60 else size(v))
        rows.append(
            (None, [f.replace('_', ' ')] + [form(number(section(tiers, t), f)) for t in TIERS]))
    out = ['<h3>At the end</h3><div class="box">', all_rows(['', 'DRAM', 'PM'], rows)]
    sites = run.stats.get('sites')
    lines = []
    for s in (sites if isinstance(sites, list) else [])[:20]:
        frames = s.get('frames') if isinstance(s, dict) else None
        names = [
            text(f, 'name') for f in (frames if isinstance(frames, list) else [])[:3]
            if isinstance(f, dict)
        ]
        lines.append((None, [
            size(number(s, 'bytes')),
            size(number(s, 'live_bytes')),
            count(number(s, 'count')),
            text(s, 'tier'), ' < '.join(names)
        ]))
    if lines:
        out.append(
            '<details><summary>Call sites, the largest %d</summary>%s</details>' %
            (len(lines),
             all_rows(['allocated', 'live', 'count', 'tier', 'site < caller < caller'], lines)))
    return ''.join(out) + '</div>'


def section_of(run, number_of):
    head = ('<section id="p%d"><h2>%s <span class="note">process %d</span></h2><p '
            'class="sub">%s</p>') % (
        number_of, e(run.name), run.pid,
        e('%s; PM: %s%s' %
          (run.exe or 'unknown', text(run.facts, 'pm') or text(run.stats, 'why') or 'unknown',
           '; profile: ' + text(run.facts, 'profile') if text(run.facts, 'profile') else '')))
    out = [head, tiles(run), gain_part(run)]
    if run.ticks:
        end = max(run.end_ns / 1e9, run.ticks[0].ns / 1e9 + 1e-9)
        pages = page_charts(run)
        out.append(grid('Pages', pages) + moves_part(run))
        out.append(grid('Memory', memory_charts(run, end)))
        out.append(
            grid(
                'Class and what the counters said',
                class_charts(run, end) +
                [bandwidth(run, 'reads', end),
                 bandwidth(run, 'writes', end)]))
        out.append(grid('Threads', [thread_chart(run, end)]))
    elif run.has_trace:
        out.append('<p>The trace has no sample.</p>')
    out += [stats_part(run), cost_part(run), warnings_part(run), settings_part(run), '</section>']
    return ''.join(out)


def grid(title, charts):
    charts = [c for c in charts if c]
    return '<h3>%s</h3><div class="grid">%s</div>' % (e(title), ''.join(charts)) if charts else ''


def overview(runs):
    rows = []
    for i, r in enumerate(runs):
        gain = data.Gain(r)
        cls = data.main_class(r)[0] or text(r.stats, 'class')
        rows.append([
            r.name,
            str(r.pid),
            duration(r.end_ns / 1e9) if r.has_trace else '',
            CLASS_NAMES.get(cls, ''),
            size(peak(r, 0)),
            size(peak(r, 1)),
            size(r.last.up + r.last.down) if r.last else '',
            percent(gain.of_pm) if gain.known else 'not known'
        ])
    body = ''.join(
        '<tr><td><a href="#p%d">%s</a></td>%s</tr>' % (i, e(row[0]), ''.join('<td>%s</td>' % e(c)
                                                                             for c in row[1:]))
        for i, row in enumerate(rows))
    return ('<div class="box scroll"><table><thead><tr>%s</tr></thead><tbody>%s</tbody></table>'
            '</div>') % (
        ''.join('<th scope="col">%s</th>' % e(h)
                for h in ('program', 'process', 'seen', 'class', 'DRAM at most', 'PM at most',
                          'moved', 'spared against PM')), body)


def page(runs):
    title = runs[0].name if len(runs) == 1 else '%d processes' % len(runs)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        'style-src \'unsafe-inline\'; script-src \'unsafe-inline\'">'
        '<title>%s: libhybrid report</title><style>%s</style></head><body><main>'
        '<h1>%s <span class="note">libhybrid %s</span></h1>%s%s</main><script>%s</script></body>'
        '</html>\n'
    ) % (e(title), STYLE, e(title),
         e(text(runs[0].facts, 'libhybrid') or text(runs[0].stats, 'libhybrid')), overview(runs)
         if len(runs) > 1 else '', ''.join(section_of(r, i) for i, r in enumerate(runs)), SCRIPT)
