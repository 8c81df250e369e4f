#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The demo: two real programs under the preload on the emulated tier, then the quick race
against the peers on the emulated machine.

  demo.py BUILD_DIR [--keep] [--no-race]     --keep leaves the reports in BUILD_DIR/demo

A redis server (latency-sensitive, much memory) and a batch job in Python
(CPU-bound) share 64 MiB of DRAM; what does not fit lies on PM. Both are checked:
redis by redis-check-rdb on a snapshot taken under load, the job by its result.
"""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
SHARED = 64
JOB = '''
import zlib
words = {}
state = 12345
for i in range(1500000):
    state = (state * 1103515245 + 12345) & 0x7fffffff
    key = 'w%d' % (state % 60000)
    words.setdefault(key, []).append(i)
text = ' '.join('%s:%d' % (k, len(v)) for k, v in sorted(words.items()))
print(len(words), zlib.crc32(text.encode()))
'''


def say(text=''):
    print(text, flush=True)


class Redis:
    """A redis server on a unix socket in `home`."""

    def __init__(self, home, env):
        self.sock = os.path.join(home, 'redis.sock')
        self.proc = subprocess.Popen(
            ['redis-server', '--port', '0', '--unixsocket', self.sock, '--dir', home, '--save', '',
             '--loglevel', 'warning', '--dbfilename', 'dump.rdb', '--logfile', os.path.join(home, 'redis.log')],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(300):
            if self.proc.poll() is not None:
                raise SystemExit('demo: redis-server ended at start, see %s/redis.log' % home)
            try:
                if self.ask('PING') == 'PONG':
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise SystemExit('demo: redis-server does not answer')

    def ask(self, *words):
        """One command, its answer as text (simple strings, bulk strings, integers)."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(60)
            s.connect(self.sock)
            s.sendall(b'*%d\r\n' % len(words) +
                      b''.join(b'$%d\r\n%s\r\n' % (len(w), w.encode()) for w in words))
            f = s.makefile('rb')
            line = f.readline()
            if line[:1] == b'$':
                return f.read(int(line[1:])).decode()
            return line[1:].strip().decode()

    def load(self, requests):
        subprocess.run(['redis-benchmark', '-s', self.sock, '-q', '-n', str(requests), '-r', '200000', '-d', '300',
                        '-P', '16', '-t', 'set,get,lpush'], check=True, stdout=subprocess.DEVNULL)

    def stop(self):
        self.proc.terminate()
        return self.proc.wait(timeout=120)


def settings(build, work, report, cls):
    env = {k: v for k, v in os.environ.items() if not k.startswith(('HYBRID_', 'LD_PRELOAD'))}
    env.update({'LD_PRELOAD': os.path.join(build, 'shim', 'libhybrid.so'), 'HYBRID_PM': 'emulated',
                'HYBRID_CLASS': cls, 'HYBRID_DRAM_SHARED': '%dM' % SHARED, 'HYBRID_START': '4M',
                'HYBRID_REGISTRY': os.path.join(work, 'registry'), 'HYBRID_STATS': report})
    return env


def status(build, work):
    return subprocess.run([os.path.join(build, 'tools', 'hybridctl'), 'status', '--registry',
                           os.path.join(work, 'registry')], text=True, stdout=subprocess.PIPE, check=True).stdout


def bar(dram, pm, width=40):
    whole = max(dram + pm, 1)
    d = round(width * dram / whole)
    return '#' * d + '.' * (width - d)


def show(name, path):
    with open(path) as f:
        r = json.load(f)
    t = r['tiers']
    d, p = t['dram']['peak'], t['pm']['peak']
    say('  %-10s |%s|  DRAM %6.1f MiB   PM %6.1f MiB   (%s, class %s)' %
        (name, bar(d, p), d / MIB, p / MIB, r['state'], r['class']))
    for s in r['sites'][:3]:
        frames = ' < '.join(f['name'] for f in s['frames'][:3])
        say('      %7.1f MiB allocated, %7.1f MiB live  at %s' %
            (s['bytes'] / MIB, s['live_bytes'] / MIB, frames))
    return r


def run(build, work):
    redis_home = os.path.join(work, 'redis')
    os.mkdir(redis_home)
    report = {n: os.path.join(work, n + '.json') for n in ('redis', 'job')}

    say('1. A batch job and a redis server under LD_PRELOAD=libhybrid.so; they share %d MiB of DRAM.' % SHARED)
    plain = subprocess.run(['/usr/bin/python3', '-c', JOB], check=True, text=True, stdout=subprocess.PIPE).stdout
    redis = Redis(redis_home, settings(build, work, report['redis'], 'latency'))
    job = subprocess.Popen(['/usr/bin/python3', '-c', JOB], text=True, stdout=subprocess.PIPE,
                           env=settings(build, work, report['job'], 'cpu'))
    redis.load(150000)
    say('   redis took 450,000 requests; who holds what now (hybridctl status):')
    say()
    say(''.join('   ' + line + '\n' for line in status(build, work).splitlines()).rstrip())
    say()

    out, _ = job.communicate(timeout=300)
    same = out == plain and job.returncode == 0
    say('2. The job: result %s, exit status %d: %s' %
        (out.strip(), job.returncode, 'as without the preload' if same else 'WRONG, plain run says ' + plain))

    keys = redis.ask('DBSIZE')
    redis.ask('BGSAVE')
    redis.load(20000)
    for _ in range(600):
        if 'rdb_bgsave_in_progress:0' in redis.ask('INFO', 'persistence'):
            break
        time.sleep(0.1)
    saved = 'rdb_last_bgsave_status:ok' in redis.ask('INFO', 'persistence')
    check = subprocess.run(['redis-check-rdb', os.path.join(redis_home, 'dump.rdb')], stdout=subprocess.DEVNULL)
    code = redis.stop()
    ok = saved and check.returncode == 0 and code == 0
    say('3. redis: %s keys, snapshot by a forked child under load %s, dump %s, exit status %d after SIGTERM' %
        (keys, 'written' if saved else 'FAILED', 'valid' if check.returncode == 0 else 'BROKEN', code))
    say()
    say('4. What lay where, at the most (# DRAM, . PM), and the call sites that allocated most:')
    say()
    for name in 'redis', 'job':
        show(name, report[name])
    return same and ok


def race(build):
    """The quick race prints its table and where its picture is."""
    say()
    say('5. The quick race: libhybrid, Linux and libmemtier on an emulated machine, in virtual time.')
    say()
    runner = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'bench', 'race', 'race.py')
    return subprocess.run([sys.executable, runner, '--build', build, '--quick', '--check']).returncode == 0


def main():
    build = os.path.abspath(sys.argv[1])
    work = tempfile.mkdtemp(prefix='libhybrid-demo-')
    try:
        good = run(build, work)
        if '--keep' in sys.argv:
            shutil.copytree(work, os.path.join(build, 'demo'), dirs_exist_ok=True,
                            ignore=lambda d, names: [n for n in names if n.endswith('.sock')])
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if '--no-race' not in sys.argv:
        good &= race(build)
    say()
    say('Next: hybridctl doctor; hybridctl run --pm emulated --stats -- PROGRAM; bench/race/race.py; man libhybrid')
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
