#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl calibrate: what the two memories of this machine can do.

Lets hybrid-measure, which lies beside this file, measure latency, bandwidth with 1 to N
threads and interference, and writes the machine file that libhybrid looks for. Started by
hybridctl."""
import argparse
import errno
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # in a folder of the system
from calibrate_figures import (  # noqa: E402
    BUSY, INTERFERENCE, KINDS, LINE_MBS_NS, SPREAD, TIERS, curve, derived, doubts, figures,
    keys_that_count, median, requests, spread, thread_counts)

HERE = os.path.dirname(os.path.abspath(__file__))


class Failure(Exception):
    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


# --- measuring -------------------------------------------------------------------------

def progress(text):
    if sys.stderr.isatty():
        sys.stderr.write('\r\033[K' + text)
        sys.stderr.flush()


class Measure:
    """hybrid-measure, one request after the other."""

    def __init__(self, o):
        program = os.path.join(HERE, 'emu-measure' if o.emulated else 'hybrid-measure')
        if not os.access(program, os.X_OK):
            raise Failure('%s is missing%s' % (program, '; this libhybrid was built without the '
                                               'emulated machine' if o.emulated else ''))
        # A preloaded libhybrid would place this program's memory; limits of the machine, too.
        env = {k: v for k, v in os.environ.items()
               if k not in ('LD_PRELOAD', 'HYBRID_EMU_DRAM', 'HYBRID_EMU_PLACE')}
        command = [program] + (['--pm', o.pm] if o.pm else [])
        command += ['--bytes', str(o.size)] if o.size else []
        self.p = subprocess.Popen(command, env=env, text=True, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        self.facts, self.asked = {}, bool(o.pm)
        while True:
            line = self.answer()
            if line == 'ready':
                break
            key, _, value = line.partition('=')
            self.facts[key] = value
        self.virtual = self.facts['clock'] == 'virtual'

    def answer(self):
        line = self.p.stdout.readline().strip()
        if line.startswith('error ') or not line:
            self.p.stdin.close()
            status = self.p.wait()
            why = line[6:] or 'hybrid-measure ended with status %d' % status
            raise Failure(why.replace('HYBRID_PM=', '--pm ') if self.asked else why,
                          2 if status == 2 else 1)
        return line

    def ask(self, key, ms):
        """(lines a us or ns a line, share of the CPUs)"""
        kind, tier, threads = key[:3]
        beside = ' beside %s %s %d' % (*key[3:], threads) if len(key) > 3 else ''
        self.p.stdin.write('%s %s %d %g%s\n' % (kind, tier, threads, ms, beside))
        self.p.stdin.flush()
        line = self.answer()
        if line == 'wrong':
            raise Failure('%s on %s: what was read is not what was written; this memory, or '
                          'this processor, is broken' % (kind, tier))
        found = dict(re.findall(r'(\w+)=([0-9.]+)', line))
        value = float(found['ns'])
        if kind not in ('chase', 'update', 'cycle'):
            value = float(found['lines_per_us']) * LINE_MBS_NS / 1000
        return value, float(found['busy'])

    def end(self):
        self.p.kill()
        self.p.communicate()


def name_of(key):
    text = '%s %s, %d thread%s' % (key[0], key[1].upper(), key[2], 's' if key[2] > 1 else '')
    return text + (' beside %s %s' % (key[3], key[4].upper()) if len(key) > 3 else '')


def measure(m, keys, rounds, ms):
    """{key: values}, disturbed rounds, all rounds. Round after round over all keys, so that a
    disturbance meets one round of each and not all of one."""
    values, disturbed, done = {k: [] for k in keys}, 0, 0
    begin = time.monotonic()
    for r in range(rounds):
        for key in keys:
            best = None
            # On a machine that is never quiet trying again is of no use.
            for _ in range(3 if disturbed <= done / 4 else 1):
                value, busy = m.ask(key, ms)
                if best is None or busy > best[1]:
                    best = value, busy
                if busy >= BUSY:
                    break
            disturbed += best[1] < BUSY
            values[key].append(best[0])
            done += 1
            left = (time.monotonic() - begin) / done * (rounds * len(keys) - done)
            progress('round %d of %d, %3d %%, %.0f s left: %s'
                     % (r + 1, rounds, 100 * done // (rounds * len(keys)), left, name_of(key)))
    progress('')
    return values, disturbed, done


# --- what comes out ----------------------------------------------------------------------

def processor():
    try:
        with open('/proc/cpuinfo', encoding='ascii', errors='replace') as f:
            m = re.search(r'model name\s*: (.*)', f.read())
    except OSError:
        m = None
    name = m.group(1).strip() if m else platform.machine()
    return re.sub(r'[^ -~]', '?', name)


def file_text(f, points, notes, command):
    lines = ['# Made by: ' + command] + ['# ' + n for n in notes]
    lines = [t[:110] for t in lines]
    for section, content in f.items():
        if content:
            lines.append('[%s]' % section)
        lines += ['%s = %s' % (k, '%.3f' % v if isinstance(v, float) else v)
                  for k, v in content.items()]
    for tier in TIERS:
        for kind, name, _ in KINDS:
            lines.append('[curve %s %s]' % (tier, name))
            lines += ['%d = %.0f' % point for point in sorted(curve(points, kind, tier).items())]
    return '\n'.join(lines) + '\n'


def table(f, points, spreads):
    lines = ['%-26s %14s %14s' % ('', 'DRAM', 'PM')]

    def row(what, dram, pm, unit):
        lines.append('%-26s %14s %14s  %s' % (what, dram, pm, unit))
    row('latency of a load', *['%.1f' % f[t]['read-ns'] for t in TIERS], 'ns')
    row('wait in a sequential read', *['%.1f' % f[t]['stream-ns'] for t in TIERS], 'ns a line')
    row('latency of a write', *['%.1f' % f[t]['write-ns'] for t in TIERS], 'ns')
    for _, name, what in KINDS:
        title = what.replace('store', 'write')
        row(title, *['%.2f' % (f[t][name + '-mbs'] / 1e3) for t in TIERS], 'GB/s')
    row('threads that fill reads', *['%.1f' % f[t]['read-knee'] for t in TIERS], '')
    row('threads that fill writes', *['%.1f' % f[t]['write-knee'] for t in TIERS], '')
    left = f['interference']
    if left:
        row('reads beside the other', '%.1f' % left['dram-read-left'], '%.1f' % left['pm-left'],
            '% left')
        row('writes beside the other', '%.1f' % left['dram-write-left'], '', '% left')
    lines.append('')
    lines.append('GB/s by threads (stores: lines that programs write; each is read as well)')
    counts = sorted(curve(points, 'read', 'dram'))
    lines.append('%-24s' % '' + ''.join('%8d' % n for n in counts) + '  spread up to')
    for tier in TIERS:
        for kind, _, what in KINDS:
            c = curve(points, kind, tier)
            most = max(spreads[kind, tier, n] for n in counts)
            lines.append('%-24s' % ('%s, %s' % (tier.upper(), what))
                         + ''.join('%8.2f' % (c[n] / 1e3) for n in counts)
                         + '%12.0f %%' % (100 * most))
    return '\n'.join(lines)


def draw(f, points, path):
    try:
        import matplotlib
        matplotlib.use('Agg')
        from matplotlib import pyplot, ticker
    except ImportError:
        return 'no picture: python3-matplotlib is not installed'
    figure, axes = pyplot.subplots(1, 3, figsize=(13, 4.2), layout='constrained')
    colours = {'dram': 'tab:blue', 'pm': 'tab:orange'}
    for ax, pair, title in ((axes[0], (KINDS[0], KINDS[2]), 'reads'),
                            (axes[1], (KINDS[1], KINDS[3]), 'stores')):
        for (kind, _, what), style in zip(pair, ('o-', 's--')):
            for tier in TIERS:
                c = curve(points, kind, tier)
                ax.plot(sorted(c), [c[n] / 1e3 for n in sorted(c)], style, color=colours[tier],
                        markersize=4, label='%s, %s' % (tier.upper(), what.split()[0]))
        for tier in TIERS:
            at = f[tier]['read-knee' if title == 'reads' else 'write-knee']
            ax.axvline(at, color=colours[tier], linewidth=0.8, linestyle=':')
            ax.annotate('%.1f' % at, (at, 1), (2, -10), xycoords=('data', 'axes fraction'),
                        textcoords='offset points', color=colours[tier], fontsize=8)
        ax.set(title='Bandwidth of ' + title, xlabel='threads', ylabel='GB/s', yscale='log')
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.yaxis.set_major_formatter('{x:g}')
        ax.yaxis.set_minor_formatter(ticker.LogFormatter(minor_thresholds=(1.3, 0.6)))
        ax.grid(alpha=0.3, which='both')
        ax.legend(fontsize=8)
    bars = [('load\nns', f['dram']['read-ns'], f['pm']['read-ns']),
            ('write\nns', f['dram']['write-ns'], f['pm']['write-ns'])]
    left = f['interference']
    if left:
        bars += [('reads left\nbeside, %', left['dram-read-left'], left['pm-left']),
                 ('writes left\nbeside, %', left['dram-write-left'], None)]
    for i, (_, *pair) in enumerate(bars):
        for j, (tier, v) in enumerate(zip(TIERS, pair)):
            if v is not None:
                drawn = axes[2].bar(i + 0.4 * j - 0.2, v, 0.38, color=colours[tier])
                axes[2].bar_label(drawn, fmt='%.3g', fontsize=8)
    axes[2].set_xticks(range(len(bars)), [b[0] for b in bars], fontsize=8)
    axes[2].set(title='Latency and interference')
    axes[2].margins(y=0.12)
    machine = f['machine']
    title = dict.fromkeys((machine['name'], machine.get('pm'), machine['measured']))  # each once
    figure.suptitle(', '.join(t for t in title if t), fontsize=10)
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return 'picture: ' + path


def own_path():
    config = os.environ.get('XDG_CONFIG_HOME', '')
    home = os.environ.get('HOME', '')
    if not config.startswith('/') and not home.startswith('/'):
        return None
    config = config if config.startswith('/') else home + '/.config'
    return config + '/libhybrid/machine.ini'


def check_place(option, path):
    """Can a file be made there? Asked before minutes of measuring; leaves nothing behind."""
    folder = os.path.dirname(os.path.abspath(path))
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as e:
        raise Failure('%s %s: no file can be made in %s (%s)' % (option, path, folder, e.strerror),
                      2) from e


def write_file(path, text):
    """All of it or nothing; others may read it, and nobody but the owner write."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    fd, temporary = tempfile.mkstemp(prefix='.machine-', dir=folder)
    try:
        with os.fdopen(fd, 'w', encoding='ascii', errors='replace') as f:
            f.write(text)
            f.flush()
            os.fchmod(f.fileno(), 0o644)
            os.fsync(f.fileno())
        check = subprocess.run([os.path.join(HERE, 'hybrid-measure'), '--check', temporary],
                               stdout=subprocess.PIPE, text=True, check=False)
        if check.returncode:
            raise Failure('the machine file would be wrong:\n' + check.stdout)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def parse_size(text):
    m = re.fullmatch(r'(\d+)([KMG]?)', text)
    bytes_ = int(m.group(1)) << {'': 0, 'K': 10, 'M': 20, 'G': 30}[m.group(2)] if m else 0
    if not 1 << 20 <= bytes_ <= 1 << 40:
        raise argparse.ArgumentTypeError('%r: a size from 1M to 1024G is allowed' % text)
    return bytes_


def arguments(argv):
    p = argparse.ArgumentParser(
        prog='hybridctl calibrate', usage='hybridctl calibrate [OPTION]...',
        description='Measures what DRAM and PM of this machine can do, and writes the machine '
                    'file that libhybrid uses from then on. Takes some minutes on a machine '
                    'that does nothing else.')
    p.add_argument('-o', '--output', metavar='FILE', help='the machine file (default: '
                   'libhybrid/machine.ini below $XDG_CONFIG_HOME or ~/.config)')
    p.add_argument('--plot', metavar='FILE', help='the picture, PNG, SVG or PDF by its name '
                   '(default: beside the machine file)')
    p.add_argument('--pm', metavar='SPEC', help='the second memory, as HYBRID_PM')
    p.add_argument('--quick', action='store_true', help='fewer and shorter rounds, fewer counts')
    p.add_argument('--threads', type=int, metavar='N', help='most threads (default: the CPUs)')
    p.add_argument('--size', type=parse_size, metavar='SIZE', help='memory to measure on, of each '
                   'kind (default: 16 times the largest cache)')
    p.add_argument('--emulated', action='store_true', help='measure the emulated machine that '
                   'HYBRID_EMU_PRESET and its kin describe; needs -o')
    p.add_argument('--force', action='store_true', help='write the file whatever is wrong')
    o = p.parse_args(argv)
    if o.emulated and not o.output:
        p.error('--emulated needs -o FILE: the usual file is for this machine itself')
    if o.threads is not None and not 1 <= o.threads <= 512:
        p.error('--threads=%d: 1 to 512 are allowed' % o.threads)
    allowed = ('.png', '.svg', '.pdf')
    if o.plot and os.path.splitext(o.plot)[1] not in allowed:
        p.error('--plot=%s: a name that ends in %s is allowed' % (o.plot, ', '.join(allowed)))
    return o


def run(o, m, output):
    most = o.threads or int(m.facts['cpus'])
    half = min(int(m.facts['cores']), most) // 2
    keys = requests(most, half, o.quick, m.virtual)
    if m.virtual:
        rounds, ms = (1, 0.5) if o.quick else (3, 1)
    else:
        rounds, ms = (3, 20) if o.quick else (7, 60)
    begin = time.monotonic()
    print('PM: %s; %d MiB of each kind, up to %d threads, %d rounds'
          % (m.facts['pm_is'], int(m.facts['bytes']) >> 20, most, rounds), flush=True)
    values, disturbed, total = measure(m, keys, rounds, ms)
    points = {k: median(v) for k, v in values.items()}
    spreads = {k: spread(v) for k, v in values.items()}
    points.update(derived(values, points, half))
    noisy = {name_of(k): spreads[k] for k in keys_that_count(values, points)
             if spreads[k] > SPREAD}
    if half not in thread_counts(most, o.quick):  # then it is no point of a curve
        for k in [k for k in points if len(k) == 3 and k[2] == half]:
            del points[k]
    of = {'version': 1, 'name': (m.facts['pm'] if m.virtual else processor())[:63],
          'source': 'measured', 'measured': time.strftime('%Y-%m-%d')}
    of.update((k, m.facts[k]) for k in ('cpu', 'pm', 'dram-mib', 'pm-mib')
              if m.facts.get(k) not in (None, '', '0'))
    of['cycle-ns'] = 0.4 if m.virtual else points['cycle', 'core', 1] / 16
    f = figures(points, of)
    wrong = doubts(f, noisy, disturbed, total)
    if m.facts['ordinary'] == '1':
        wrong = ['%s: it says nothing of a PM' % m.facts['pm_is']] + wrong
    # First the file: whoever reads what is printed may have had enough of it early.
    told = write_results(o, output, f, points, wrong)
    print(table(f, points, spreads))
    print('\n%d rounds in %.0f s' % (total, time.monotonic() - begin)
          + (', %d of them disturbed by other programs' % disturbed if disturbed else ''))
    if not half:
        print('one core: interference is not measured')
    for w in wrong:
        print('doubtful: ' + w)
    print('\n'.join(told), flush=True)
    if wrong and not o.force:
        print('hybridctl calibrate: no machine file is written; --force writes it all the same',
              file=sys.stderr)
        return 1
    return 0


def write_results(o, output, f, points, wrong):
    """The file, unless something is wrong, and the picture. What there is to say of them."""
    told = []
    if o.force or not wrong:
        command = 'hybridctl calibrate' + ''.join(
            ' --' + k for k in ('quick', 'emulated', 'force') if getattr(o, k))
        write_file(output, file_text(f, points, ['doubtful: ' + w for w in wrong], command))
        told.append('machine file: ' + output)
        if output not in (own_path(), '/etc/libhybrid/machine.ini'):
            told.append('used with HYBRID_MACHINE=' + os.path.abspath(output))
    if o.plot or told:
        told.append(draw(f, points, o.plot or os.path.splitext(output)[0] + '.png'))
    return told


def main(argv):
    o = arguments(argv)
    output = o.output or own_path()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    m = None
    try:
        if not output:
            raise Failure('neither HOME nor XDG_CONFIG_HOME is an absolute path: name the file '
                          'with -o', 2)
        check_place('-o', output)
        if o.plot:
            check_place('--plot', o.plot)
        m = Measure(o)
        return run(o, m, output)
    except Failure as e:
        progress('')
        print('hybridctl calibrate: %s' % e, file=sys.stderr)
        return e.status
    except (OSError, ValueError) as e:
        progress('')
        print('hybridctl calibrate: %s' % e, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        progress('')
        print('hybridctl calibrate: interrupted; nothing is written', file=sys.stderr)
        return 128 + signal.SIGINT
    finally:
        if m:
            m.end()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
