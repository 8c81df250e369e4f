# SPDX-License-Identifier: BSD-2-Clause
"""Names for return addresses: the function symbols of ELF files, their own or those of the
separate debug files that distributions install by build-id."""
import bisect
import os
import re
import struct

DEBUG_DIRS = ('/usr/lib/debug/.build-id', '/usr/local/lib/debug/.build-id')
SHT_SYMTAB, SHT_DYNSYM = 2, 11
STT_FUNC, STT_GNU_IFUNC = 2, 10
# Functions that only hand on what malloc gave them: their caller is the better name.
WRAPPER = re.compile(r'alloc|strn?dup|^operator new|_new(_|$)|^_?Zn[wa]|grow_?buf', re.I)


def behind_arguments(rest):
    """What follows the template arguments that it begins with."""
    depth, i = 0, 0
    while i < len(rest):
        n = re.match(r'\d+', rest[i:])
        if n:
            i += n.end() + int(n[0])
            continue
        depth += rest[i] in 'INXJL'
        depth -= rest[i] == 'E'
        i += 1
        if depth == 0:
            break
    return rest[i:]


def demangled(name):
    """The names in an Itanium C++ symbol, without types; any other name as it is."""
    if re.match(r'_Zn[wa]', name):
        return 'operator new'
    m = re.match(r'_ZL?N?[KVRO]*(?:S[tabsiod])?', name)
    if not m:
        return name
    parts, rest = [], name[m.end():]
    while True:
        n = re.match(r'\d+', rest)
        if not n:
            break
        end = n.end() + int(n[0])
        parts.append(rest[n.end():end])
        rest = rest[end:]
        if rest.startswith('I'):
            rest = behind_arguments(rest)
    return '::'.join(parts) or name


class Symbols:
    """Functions of one file: sorted addresses, names."""

    def __init__(self, path):
        self.starts, self.ends, self.names = [], [], []
        try:
            with open(path, 'rb') as f:
                data = f.read()
            found = self.read(data)
        except (OSError, struct.error, IndexError, ValueError):
            return
        for start, end, name in sorted(found):
            if self.starts and self.starts[-1] == start:
                continue
            self.starts.append(start)
            self.ends.append(end)
            self.names.append(name)

    @staticmethod
    def read(data):
        if data[:6] != b'\x7fELF\x02\x01':  # 64 bits, little-endian
            return []
        at, = struct.unpack_from('<Q', data, 0x28)
        size, count = struct.unpack_from('<HH', data, 0x3a)
        sections = [struct.unpack_from('<IIQQQQIIQQ', data, at + i * size) for i in range(count)]
        found = []
        for s in sections:
            if s[1] not in (SHT_SYMTAB, SHT_DYNSYM) or not 0 <= s[6] < count:
                continue
            strings = sections[s[6]]
            for p in range(s[4], s[4] + s[5] - 23, 24):
                name, info, _, shndx, value, length = struct.unpack_from('<IBBHQQ', data, p)
                if info & 15 not in (STT_FUNC, STT_GNU_IFUNC) or shndx == 0 or length == 0:
                    continue
                start = strings[4] + name
                text = data[start:data.index(b'\0', start)].decode('ascii', 'replace')
                found.append((value, value + length, demangled(text.partition('@')[0])))
        return found

    def at(self, address):
        """(function, bytes into it) of a return address; None."""
        i = bisect.bisect_right(self.starts, address - 1) - 1
        if i < 0 or address - 1 >= self.ends[i]:
            return None
        return self.names[i], address - self.starts[i]


class Modules:
    """By build-id, as frames name them; paths from [modules]."""

    def __init__(self, paths):
        self.paths = {key.lower().rstrip('0'): path for key, path in paths.items()}
        self.loaded = {}

    def symbols(self, build_id):
        key = build_id.lower().rstrip('0')
        if key not in self.loaded:
            files = [os.path.join(d, build_id[:2], build_id[2:] + '.debug') for d in DEBUG_DIRS]
            files.append(self.paths.get(key, ''))
            tables = [Symbols(path) for path in files if path and os.path.exists(path)]
            self.loaded[key] = next((t for t in tables if t.starts), None)
        return self.loaded[key]

    def function(self, frame):
        """(function, bytes into it) of a frame "BUILDID+0xOFFSET"; None."""
        build_id, _, offset = frame.partition('+0x')
        table = self.symbols(build_id)
        return table.at(int(offset, 16)) if table else None

    def place(self, frame):
        """What people call a frame: function+0xOFFSET, or module+0xOFFSET."""
        build_id, _, offset = frame.partition('+0x')
        found = self.function(frame)
        if found:
            return '%s+0x%x' % found
        path = self.paths.get(build_id.lower().rstrip('0'))
        return '%s+0x%s' % (os.path.basename(path) if path else build_id[:8], offset)


def site_name(frames, modules, most):
    """The place that wanted the memory: in the first function that is no wrapper of an
    allocator. Of long names the end of the function's gives way, not the offset."""
    chosen = frames[0]
    for frame in frames:
        found = modules.function(frame)
        if not found or not WRAPPER.search(found[0]):
            chosen = frame
            break
    name, plus, offset = modules.place(chosen).rpartition('+')
    return name[:most - len(plus + offset)] + plus + offset
