#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The library exports exactly the names of exports.txt: a missing one splits the
allocator family, one too many may take the place of somebody else's function."""
import subprocess
import sys


def main(lib, listed):
    got = subprocess.run(['nm', '-D', '--defined-only', lib], stdout=subprocess.PIPE, check=True).stdout.decode()
    symbols = [ln.split()[-2:] for ln in got.splitlines()]
    # 'A' is the version node itself
    names = sorted(n.split('@')[0] for kind, n in symbols if kind != 'A')
    with open(listed, encoding='ascii') as f:
        want = [ln.strip() for ln in f if ln.strip()]
    if want != sorted(set(want)):
        print('exports.txt is not sorted or names something twice')
        return 1
    for n in sorted(set(names) ^ set(want)):
        print(('exported, not listed: ' if n in names else 'listed, not exported: ') + n)
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        print('exported twice:', *twice)
    needed = subprocess.run(['readelf', '-d', lib], stdout=subprocess.PIPE, check=True).stdout.decode()
    libs = [ln.split('[')[1].rstrip(']') for ln in needed.splitlines() if 'NEEDED' in ln]
    foreign = [n for n in libs if not n.startswith(('libc.so', 'ld-linux', 'libpthread', 'libdl', 'libm.so'))]
    if foreign:
        print('linked libraries cost every program their start:', *foreign)
    return 1 if names != want or foreign or twice else 0


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit('usage: exports.py libhybrid.so exports.txt')
    sys.exit(main(*sys.argv[1:]))
