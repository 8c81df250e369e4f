# SPDX-License-Identifier: BSD-2-Clause
"""What is known of a job: learnt from the exit reports of its last run, or from its profile."""
import configparser
import json
import math
import os
import subprocess

import outfile
from batch_order import Facts

VERSION = 1
FIELDS = ('ebw_d', 'ebw_nv', 'cls', 'writes', 'dram', 'pm', 'seconds', 'counted', 'compute', 'bus')


def number(table, *path):
    """A number that is not negative, else 0: what is in these files may be anything."""
    for name in path:
        table = table.get(name) if isinstance(table, dict) else table[name] if isinstance(table, list) and \
            isinstance(name, int) and name < len(table) else None
    ok = isinstance(table, (int, float)) and not isinstance(table, bool) and 0 <= table < 1e18
    return table if ok else 0


def of_reports(reports, seconds):
    """Facts of a job by the exit reports of its processes. Effective bandwidths are added, each for the
    part of the time for which its process was looked at; class and bytes are those of the process with
    the largest memory."""
    def bytes_of(r):
        return [number(r, 'tiers', t, 'peak') for t in ('dram', 'pm')]

    reports = [r for r in reports if isinstance(r, dict)]
    if not reports:
        return None
    longest = max(number(r, 'classification', 'windows') for r in reports) or 1
    largest = max(reports, key=lambda r: sum(bytes_of(r)))
    f = Facts(seconds=seconds, source='its last run')
    for r in reports:
        part = number(r, 'classification', 'windows') / longest
        f.ebw_d += part * number(r, 'classification', 'ebw_milli', 0) / 1000
        f.ebw_nv += part * number(r, 'classification', 'ebw_milli', 1) / 1000
    busy, compute = (sum(number(r, 'gain', k) for r in reports) for k in ('busy_ns', 'compute_ns'))
    f.compute = min(1.0, compute / busy) if busy > 0 else None
    placed = max(number(r, 'gain', 'as_placed_ns') for r in reports)
    f.bus = min(1.0, sum(number(r, 'gain', 'service_ns') for r in reports) / placed) if placed > 0 else None
    f.counted = any(number(r, 'gain', 'judged') for r in reports)
    f.dram, f.pm = bytes_of(largest)
    cls = largest.get('class')
    f.cls = cls if cls in ('cpu', 'bandwidth', 'latency') else 'unknown'
    told = largest.get('classification')
    f.writes = isinstance(told, dict) and told.get('write_intensive') is True
    return f


def read_reports(folder):
    out = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        try:
            with open(os.path.join(folder, name), encoding='utf-8', errors='replace') as f:
                out.append(json.load(f))
        except (OSError, ValueError):
            continue  # of a process that was killed
    return out


def by_class(f):
    """Without counters the EBW is not known: CPU-bound ones need little, the others count alike."""
    if not f.counted:
        need = 0.0 if f.cls == 'cpu' else 1.0
        f.ebw_d, f.ebw_nv = (0.0, need) if f.on_pm else (need, 0.0)
        f.compute = f.bus = None
    return f


def better(new, old):
    """What a run without counters tells does not replace what is known of the bandwidth."""
    if old and old.counted and not new.counted:
        old.seconds = new.seconds
        return old
    return new


def of_profile(ctl, job):
    """Facts by the profile that the job names, or None: explain tells class, memory and the machine's
    latencies, the file itself the lines of the whole run."""
    p = subprocess.run([ctl, 'explain', '--json', job.options['profile']], stdout=subprocess.PIPE,
                       stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=False,
                       cwd=job.options.get('dir'), env=dict(os.environ, **job.env))
    try:
        told = json.loads(p.stdout)
        ini = configparser.ConfigParser(strict=False, interpolation=None)
        with open(os.path.join(job.options.get('dir', '.'), told['file']), encoding='utf-8', errors='replace') as f:
            ini.read_file(f)
    except (ValueError, KeyError, TypeError, OSError, configparser.Error):
        return None
    f = Facts(source='its profile', counted=False)
    f.cls = job.options.get('class') or told.get('class')
    f.cls = f.cls if f.cls in ('cpu', 'bandwidth', 'latency') else 'unknown'
    f.writes = told.get('write_intensive') == 'yes'
    need = number(told, 'footprint')
    placed = 0 if job.options.get('policy') == 'pm' else min(need, number(told, 'dram'))
    if job.options.get('policy') != 'dram' and number(told, 'dram_planned') and placed:
        placed = min(placed, number(told, 'dram_planned'))
    f.dram, f.pm = placed, need - placed
    try:
        ns = ini.getfloat('recorded', 'milliseconds') * 1e6
        reads, writes = (ini.getfloat('recorded', k) for k in ('reads', 'writes'))
    except (configparser.Error, ValueError):
        return f
    if ns > 0:
        share = f.pm / need if need else 0.0
        f.ebw_d = (1 - share) * sum(n * number(told, 'latency_ns', 'dram', k) for k, n in enumerate((reads, writes))) / ns
        f.ebw_nv = share * sum(n * number(told, 'latency_ns', 'pm', k) for k, n in enumerate((reads, writes))) / ns
        f.seconds, f.counted = ns / 1e9, True
    return f


class Learnt:
    """Facts by job key, kept beside the journal for the next batch."""

    def __init__(self, path):
        self.path, self.facts = path, {}
        try:
            with open(path, encoding='utf-8') as f:
                told = json.load(f)
        except (OSError, ValueError):
            return
        if not isinstance(told, dict) or told.get('version') != VERSION or not isinstance(told.get('jobs'), dict):
            return
        for key, v in told['jobs'].items():
            if isinstance(v, dict):
                f = Facts(cls=str(v.get('cls', 'unknown')), writes=v.get('writes') is True, source='its last run',
                          counted=v.get('counted') is True)
                for name in ('ebw_d', 'ebw_nv', 'dram', 'pm', 'seconds'):
                    setattr(f, name, number(v, name))
                for name in ('compute', 'bus'):
                    setattr(f, name, min(1.0, number(v, name)) if v.get(name) is not None else None)
                self.facts[key] = by_class(f)

    def add(self, key, f):
        """False: it cannot be kept."""
        self.facts[key] = f
        told = {k: {n: getattr(v, n) for n in FIELDS} for k, v in self.facts.items() if v.source == 'its last run'}
        try:
            outfile.write(self.path, json.dumps({'version': VERSION, 'jobs': told}, indent=1).encode())
        except OSError:
            return False
        return True


def gather(ctl, jobs, learnt):
    """{job key: Facts} of all that is known: what was learnt counts more than a profile."""
    out = {}
    for j in jobs:
        f = of_profile(ctl, j) if 'profile' in j.options and j.key not in out else None
        if j.key in learnt.facts:
            out[j.key] = better(learnt.facts[j.key], f)
        elif f:
            out[j.key] = by_class(f)
    for j in jobs:
        if j.key in out:
            out[j.key].pm_only = j.options.get('policy') == 'pm'
        cls = j.options.get('class')
        if j.key in out and cls in ('cpu', 'bandwidth', 'latency'):
            out[j.key].cls = cls
            by_class(out[j.key])
    return out


def dram_of_all(ctl):
    """Bytes of DRAM that programs under libhybrid share here, as far as that is known."""
    try:
        p = subprocess.run([ctl, 'status', '--json'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           stdin=subprocess.DEVNULL, check=False)
        return number(json.loads(p.stdout), 'dram_budget') or math.inf
    except (OSError, ValueError):
        return math.inf
