# SPDX-License-Identifier: BSD-2-Clause
"""The clock of the processors (cpufreq), where this user may write to it, and their energy (powercap), where
he may read it. Nothing is asked of root."""
import glob
import os

import batch_pair


def read_number(path):
    try:
        with open(path, encoding='ascii') as f:
            return int(f.read())
    except (OSError, ValueError):
        return None


class Clock:
    """The highest clock that the kernel may choose; what it was is put back at the end."""

    def __init__(self, root='/sys'):
        self.before, self.low = {}, False
        for policy in sorted(glob.glob(root + '/devices/system/cpu/cpufreq/policy*')):
            path = policy + '/scaling_max_freq'
            now, least = read_number(path), read_number(policy + '/cpuinfo_min_freq')
            if now and least is not None and os.access(path, os.W_OK):
                self.before[path] = (now, max(least, int(now * batch_pair.LOW)))

    def usable(self):
        return bool(self.before)

    def set(self, low):
        """True: it has changed."""
        if low == self.low:
            return False
        for path, (full, less) in self.before.items():
            try:
                with open(path, 'w', encoding='ascii') as f:
                    f.write(str(less if low else full))
            except OSError:
                pass  # taken away meanwhile: the next one may work
        self.low = low
        return bool(self.before)


class Energy:
    """Joules of all packages since the first look. Counters wrap; look at least every few minutes."""

    def __init__(self, root='/sys'):
        self.joules, self.last = 0.0, {}
        for path in sorted(glob.glob(root + '/class/powercap/intel-rapl:*')):
            if os.path.basename(path).count(':') == 1:  # a package, not a part of one
                now, top = read_number(path + '/energy_uj'), read_number(path + '/max_energy_range_uj')
                if now is not None and top:
                    self.last[path] = (now, top)

    def usable(self):
        return bool(self.last)

    def look(self):
        for path, (before, top) in self.last.items():
            now = read_number(path + '/energy_uj')
            if now is not None:
                self.joules += (now - before if now >= before else now + top - before) / 1e6
                self.last[path] = (now, top)
        return self.joules
