#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Do the hardware events of counters.def exist? PAPI takes the names of libpfm, whose tables hold all
processors of an architecture, also those that are not here. The codes of sampler_loads.def, which
go to the kernel as they are, must be those of their names.

events.py COUNTERS.DEF LOADS.DEF [-v]   skipped (77) without libpfm4; -v: for which processors"""
import ctypes
import os
import platform
import re
import sys

PMUS = {'x86_64': ('snb ivb hsw bdw skl skx clx icl icx spr amd64_fam17h_zen1 amd64_fam17h_zen2 '
                   'amd64_fam19h_zen3 amd64_fam19h_zen4').split(),
        'aarch64': 'arm_n1 arm_n2 arm_v1'.split()}
ARM = 'aarch64'
USER = 8  # PFM_PLM3


class Encoded(ctypes.Structure):
    _fields_ = [('codes', ctypes.c_void_p), ('text', ctypes.c_void_p), ('size', ctypes.c_size_t),
                ('count', ctypes.c_int), ('index', ctypes.c_int)]


def codes(pmu, names):
    """Name -> codes, of those that libpfm can encode on such a processor; asked in a child, as it
    is chosen once."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).setenv(b'LIBPFM_FORCE_PMU', pmu.encode(), 1)
        pfm = ctypes.CDLL('libpfm.so.4')
        found = b''
        if pfm.pfm_initialize() == 0:
            for i, name in enumerate(names):
                e = Encoded(size=ctypes.sizeof(Encoded))
                full = ('%s::%s' % (pmu, name)).encode()
                if pfm.pfm_get_os_event_encoding(full, USER, 0, ctypes.byref(e)) == 0:
                    words = ctypes.cast(e.codes, ctypes.POINTER(ctypes.c_uint64))
                    found += b'%d' % i + b''.join(b':%d' % words[k] for k in range(e.count)) + b' '
        os.write(writer, found)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as f:
        found = f.read().split()
    os.waitpid(child, 0)
    rows = [[int(word) for word in row.split(':')] for row in found]
    return {names[row[0]]: row[1:] for row in rows}


def wrong_codes(path):
    """Rows of the table of load samples whose names mean something else, or nothing."""
    with open(path, encoding='ascii') as f:
        text = re.sub(r'"\s+"', '', f.read())
    rows = re.findall(r'HY_(?:LOADS|STORES)\("cpu\w*",\s*"[^"]*",\s*"[^"]*",\s*"([^"]+)",\s*(\w+),\s*(\w+)', text)
    wrong = [] if rows else ['no rows']
    for names, config, config1 in rows:
        seen = 0
        for pmu in PMUS['x86_64']:
            for name, words in codes(pmu, names.split()).items():
                # Event and mask; the rest is what counting needs. The second word: of the event.
                if [words[0] & 0xffff] + words[1:] != [int(config, 0)] + [int(config1, 0)] * (
                        len(words) - 1) or (int(config1, 0) and len(words) < 2):
                    wrong.append('%s on %s is %s' % (name, pmu, [hex(w) for w in words]))
                seen += 1
        if not seen:
            wrong.append('%s: nowhere' % names)
    print('%d rows of samples, %d wrong' % (len(rows), len(wrong)))
    return wrong


def main(path, loads, verbose):
    machine = platform.machine()
    try:
        ctypes.CDLL('libpfm.so.4')
    except OSError as e:
        print('skipped: %s' % e)
        return 77
    if machine not in PMUS:
        print('skipped: no table for %s' % machine)
        return 77
    with open(path, encoding='ascii') as f:
        rows = re.findall(r'HY_EVENT\(HARDWARE, (\w+),\s*"([^"]+)",\s*"(\w+)', f.read())
    names = [name for _, name, family in rows
             if not name.startswith('PAPI_') and (family == 'Arm') == (machine == ARM)]
    where = {name: [] for name in names}
    for pmu in PMUS[machine]:
        for name in codes(pmu, names):
            where[name].append(pmu)
    if not any(where.values()):
        print('skipped: this libpfm knows none of %s' % ' '.join(PMUS[machine]))
        return 77
    if codes(PMUS[machine][0], ['NO_SUCH_EVENT:AT_ALL']):
        print('libpfm takes any name: this test proves nothing')
        return 1
    for name, pmus in where.items():
        if verbose or not pmus:
            print('%-90s %s' % (name, ' '.join(pmus) or 'NOWHERE'))
    print('%d names of %d exist on some processor' % (sum(map(bool, where.values())), len(names)))
    wrong = wrong_codes(loads) if machine != ARM else []
    for line in wrong:
        print(line)
    return 0 if names and all(where.values()) and not wrong else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], sys.argv[2], '-v' in sys.argv[3:]))
