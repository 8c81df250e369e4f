#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl report: one HTML page from the traces of a run."""
import argparse
import os
import sys

import outfile
import report_page
import report_trace


def arguments(argv):
    p = argparse.ArgumentParser(
        prog='hybridctl report', usage='hybridctl report [-o OUT.html] FILE...', description=
        'Makes one self-contained page of what happened to a program: page heat and write domain, '
        'memory, '
        'moves, counts, class, threads, and what it gained. FILE: traces (HYBRID_TRACE) and exit '
        'reports '
        '(HYBRID_STATS) of one or more processes.')
    p.add_argument('-o', '--output', metavar='OUT.html',
                   help='the page (default: the first FILE with .html; -: standard output)')
    p.add_argument('files', nargs='+', metavar='FILE')
    return p.parse_args(argv)


def default_output(path):
    base = os.path.splitext(os.path.basename(path))[0]
    return base + '.html'


def write(path, page):
    """Whole or not at all."""
    data = page.encode('utf-8', 'replace')
    if path == '-':
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    outfile.write(path, data)


def main(argv):
    o = arguments(argv)
    runs, failed = [], 0
    for path in o.files:
        try:
            runs.append(report_trace.read(path))
        except (OSError, report_trace.Unreadable) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            print('hybridctl report: %s: %s' % (path, why), file=sys.stderr)
            failed = 1
    if not runs:
        return 1
    runs = report_trace.pair(runs)
    runs.sort(key=lambda r: (r.exe, r.pid))
    out = o.output or default_output(o.files[0])
    if any(os.path.exists(out) and os.path.samefile(out, f) for f in o.files if os.path.exists(f)):
        print('hybridctl report: -o %s is one of the FILEs' % out, file=sys.stderr)
        return 2
    try:
        write(out, report_page.page(runs))
    except OSError as error:
        print('hybridctl report: %s: %s' % (out, error.strerror), file=sys.stderr)
        return 1
    if out != '-':
        print('page: %s' % out)
    return failed


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
