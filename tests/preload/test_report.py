#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl report: the page of a whole trace, and of traces that nobody would write.

    test_report.py --ctl FILE --lib libhybrid.so --tools DIR [unittest arguments]
"""
import json
import os
import random
import re

import viewed
from page import PageCase
from viewed import ctl


def made_up(ticks=40, passes=20, name='/bin/<script>alert(1)</script>&"\'app'):
    """A trace as the library writes them."""
    out = [{
        'line': 'run', 'version': 1, 'libhybrid': '1', 'pid': 7, 'exe': name, 'pm': 'nodes',
        'clock': 'monotonic', 'start_ns': 5, 'capacity': [1 << 30, 1 << 34], 'profile': ''
    }, {
        'line': 'setting', 'name': 'HYBRID_DRAM', 'value': '"><img src=x onerror=alert(1)>',
        'from': 'environment'
    }, {
        'line': 'counters', 'source': 'hardware </title>', 'why': '', 'machine': 'm',
        'figures': 'measured <b>'
    }, {
        'line': 'migration', 'state': 'on', 'why': '', 'way': 'numa', 'writes': 'pagemap-scan',
        'reads': ''
    }, {'line': 'warning', 'ns': 3, 'text': 'a warning <script>alert(2)</script>'}]
    for i in range(1, ticks + 1):
        out.append({
            'tick': 'sample', 'ns': i * 10**8, 'used': [i << 20, 50 << 20], 'limit': [
                64 << 20, 1 << 34
            ], 'refused': [0, 0], 'claimed': 0, 'shared': 1, 'wish': i, 'asked': 0,
            'class': 'cpu' if i < 9 else 'bandwidth', 'threads': 4, 'running': 3500, 'cap': 2,
            'held': 2, 'cpus': 8, 'up': i << 20, 'down': i << 19, 'refused_pages': 0,
            'regretted_pages': 0, 'found_pages': 70 * i, 'undone_pages': 40 * i, 'truces': i // 4,
            'tasks': 9 * i, 'task_stages': 5 * i, 'task_hits': 4 * i, 'task_staged': i << 20,
            'look_ns': i * 1000, 'move_ns': i * 2000, 'class_ns': i,
            'trace_ns': i, 'found': 'bandwidth', 'confidence': 900, 'weak': 0, 'write_intensive': 1,
            'slowdown': [3000, 2000, 1500], 'phases': 1, 'predicted_ns': [
                i * 5 * 10**7, i * 10**8, i * 2 * 10**8
            ], 'sums': {
                'windows': i, 'reads': i * 1000, 'reads-pm': i * 300, 'writes': i * 500,
                'writes-pm': i * 100, 'stall-ns': i * 10**7, 'wait-ns': 0, 'busy-ns': i * 10**8
            }
        })
    for i in range(1, passes + 1):
        n = 64
        out.append({
            'pass': 'pass', 'ns': i * 19 * 10**7, 'number': i, 'interval_ns': 10**8, 'on': [
                100, 924
            ], 'bands_dram': [1, 2, 3, 4, 5, 6], 'bands_pm': [600, 0, 0, 0, 0,
                                                              10], 'tracked': 1024, 'written': 100,
            'predicted': [900, 100, 24], 'observed': 1024, 'right': 1000, 'wanted': 5, 'paused': 0,
            'bins': n, 'at': [[0, 4096 * 1000, 16], [32, 4096 * 90000, 16]], 'heat': ''.join(
                '%x' % ((i + b) % 16) for b in range(n)), 'writes': ''.join(
                    '%x' % ((i * b) % 16)
                    for b in range(n)), 'will_write': '0' * n, 'on_pm': ('0' * 16 + 'f' * 16) * 2
        })
    out.append({'line': 'end', 'ns': (ticks + 1) * 10**8})
    return ''.join(json.dumps(d) + '\n' for d in out)


class Hostile(PageCase):
    def write(self, text, name='x.trace'):
        path = os.path.join(self.dir, name)
        with open(path, 'wb') as f:
            f.write(text if isinstance(text, bytes) else text.encode('utf-8', 'surrogatepass'))
        return path

    def made(self, data):
        """The page of a file's bytes, by the program's own modules: quick enough for thousands."""
        import report_page
        import report_trace
        path = self.write(data)
        try:
            run = report_trace.read(path)
        except report_trace.Unreadable:
            return None
        page = report_page.page(report_trace.pair([run]))
        page.encode('utf-8')
        return page

    def test_everything_is_shown_and_nothing_runs(self):
        c = self.page(self.write(made_up()))
        for said in ('<script>alert(1)</script>&"\'app', '"><img src=x onerror=alert(1)>',
                     'hardware </title>', 'a warning <script>alert(2)</script>', 'Page heat',
                     'Write domain', 'Where the pages were', 'Pages moved', 'Threads',
                     'What it gained', 'Slowdown against all data on DRAM', 'Prediction of writes',
                     'Lines read', 'all on PM', 'moves rested', 'ran on such data'):
            self.assertIn(said, c.words, said)
        # 20 s of 40 s by the model: half the time was spared, two thirds of what was possible
        self.assertIn('50 % less than with all data on PM, 66.7 % of what DRAM can bring', c.words)

    def test_what_is_not_known_is_not_drawn(self):
        """The first samples may come before the library has asked for its CPUs."""
        lines = [json.loads(line) for line in made_up().splitlines()]
        early = [d for d in lines if 'tick' in d][:5]
        for d in early:
            d['cpus'] = d['threads'] = 0
        page = self.made(''.join(json.dumps(d) + '\n' for d in lines))
        chart = page[page.index('<b>Threads</b>'):]
        rows = re.findall(r'<tr data-x="(.*?)"><td>.*?</td><td>(.*?)</td><td>.*?</td>'
                          r'<td>.*?</td><td>(.*?)</td>', chart[:chart.index('</table>')])
        self.assertGreater(len(rows), 10)
        for x, threads, cpus in rows:
            self.assertEqual((threads, cpus), ('', '') if float(x) < 0.55 else ('4', '8'), x)

    def test_truncated_anywhere(self):
        whole = made_up(ticks=6, passes=4).encode()
        first = whole.index(b'\n') + 1
        for end in list(range(first, first + 12)) + list(range(first, len(whole), 2801)):
            page = self.made(whole[:end])
            self.assertIsNotNone(page)
            self.well_formed(page)

    def test_wrong_values(self):
        odd = [
            None, True, -1, 1 << 70, 1.5, 'x' * 5000, [], [[[]]], {}, [1 << 70] * 3, '\ud800',
            '</td>', [None] * 64, '0' * 300, [[0, 0, 1 << 62]], [[0, 1 << 61, 1 << 39]],
            [[5, 4096, 2]], 0
        ]
        lines = [json.loads(x) for x in made_up(ticks=2, passes=2).splitlines()]
        for number, line in enumerate(lines):
            for k, key in enumerate(line):
                if line.get('line') == 'run' and key in ('line', 'version'):
                    continue
                for value in odd[(number + k) % len(odd)::len(odd)]:
                    changed = [
                        dict(d, **{key: value}) if i == number else d for i, d in enumerate(lines)
                    ]
                    page = self.made(''.join(json.dumps(d) + '\n' for d in changed))
                    self.assertIsNotNone(page)
                    self.well_formed(page)

    def test_random_damage(self):
        whole = made_up(ticks=8, passes=5).encode()
        rng = random.Random(4)
        seen = 0
        for _ in range(40):
            data = bytearray(whole)
            for _ in range(rng.randint(1, 30)):
                at = rng.randrange(len(data))
                data[at:at + rng.choice((0, 1, 1, 20))] = bytes(
                    rng.choice(b'0123456789"[]{},:<>&-e\n\xff\x00')
                    for _ in range(rng.choice((0, 1, 1, 3))))
            page = self.made(bytes(data))
            if page is not None:
                seen += 1
                self.well_formed(page)
        self.assertGreater(seen, 15)

    def test_long_runs_make_small_pages(self):
        trace = made_up(ticks=4000, passes=1500)
        page = self.made(trace)
        self.well_formed(page)
        self.assertLess(len(page), 600000)

    def test_nothing_in_it(self):
        first = made_up(ticks=0, passes=0)
        self.assertIn('no sample', self.page(self.write(first)).words)

    def test_other_files(self):
        for content in ('', 'x', '{}', '[1]', '{"line": "run"}', '[' * 100000, '\0' * 1000):
            done = ctl('report', '-o', self.dir + '/o.html', self.write(content))
            self.ends(done, 1, 'hybridctl report: ')
            self.assertNotIn('Traceback', done.stderr)
            self.assertFalse(os.path.exists(self.dir + '/o.html'))
        self.ends(ctl('report', self.dir + '/none'), 1, 'No such file')
        self.ends(ctl('report', self.dir), 1, 'directory')
        self.assertEqual(ctl('report').returncode, 2)

    def test_exit_reports_alone(self):
        odd = [None, [], {}, -1, 1 << 70, '<b>', [1, 'x', {}], True]
        whole = {
            'libhybrid': '1<b>', 'pid': 9, 'exe': '/bin/<i>x', 'class': 'latency', 'why': 'w',
            'tiers': {'dram': {'peak': 5 << 20}, 'pm': {'peak': 7 << 20}},
            'gain': {'all_dram_ns': 10**9, 'as_placed_ns': 10**9, 'all_pm_ns': 4 * 10**9},
            'classification': {'machine': 'm<b>', 'counters': 'c', 'why': ''},
            'warnings': ['w<script>'],
            'sites': [{'bytes': 5, 'tier': 'pm', 'frames': [{'name': '<u>f'}]}]
        }
        c = self.well_formed(self.made(json.dumps(whole)))
        for said in ('latency-sensitive', '7 MiB', '75 % less', 'w<script>', '<u>f', 'm<b>'):
            self.assertIn(said, c.words)
        for key in whole:
            for value in odd:
                page = self.made(json.dumps(dict(whole, **{key: value})))
                self.well_formed(page)
        for value in odd:
            self.well_formed(self.made(json.dumps(dict(whole, sites=[value, {'frames': value}]))))

    def test_several_processes(self):
        one, two = self.write(made_up(), 'a'), self.write(
            made_up(name='/bin/b').replace('"pid": 7', '"pid": 8'), 'b')
        bad = self.write('x', 'c')
        done = ctl('report', '-o', '-', one, bad, two)
        self.assertEqual(done.returncode, 1)
        c = self.well_formed(done.stdout)
        self.assertEqual(sorted(c.links), sorted(c.ids))
        self.assertEqual(len(c.ids), 2)
        self.assertIn('process 7', c.words)
        self.assertIn('process 8', c.words)

    def test_output(self):
        trace = self.write(made_up())
        self.ends(ctl('report', '-o', trace, trace), 2, 'one of the FILEs')
        with open(trace, encoding='utf-8') as f:
            self.assertEqual(f.read(), made_up())
        self.ends(ctl('report', '-o', self.dir + '/no/x.html', trace), 1, 'No such file')
        done = ctl('report', 'x.trace', cwd=self.dir)
        self.assertEqual((done.returncode, done.stdout), (0, 'page: x.html\n'))
        self.assertEqual(ctl('report', '-o', '/dev/null', trace).returncode, 0)
        self.assertFalse(os.path.isfile('/dev/null'))


if __name__ == '__main__':
    viewed.main()
