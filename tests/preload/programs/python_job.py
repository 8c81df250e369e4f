# SPDX-License-Identifier: BSD-2-Clause
"""The job of the python cases: threads, subprocess, multiprocessing, big and many objects."""
import ctypes
import gc
import hashlib
import json
import mmap
import multiprocessing
import os
import pickle
import queue
import sqlite3
import subprocess
import sys
import tempfile
import threading
import zlib


def digest(thing):
    return hashlib.sha256(repr(thing).encode()).hexdigest()[:16]


def work(n):
    rows = [{'i': i, 's': 'x' * (i % 50), 'l': list(range(i % 20))} for i in range(n)]
    return digest(json.loads(json.dumps(rows)))


def in_child(args):
    n, base = args
    base = bytearray(base)
    base[0:4] = b'kid!'
    return work(n), hashlib.md5(base).hexdigest()


def threads():
    jobs, results = queue.Queue(), {}

    def loop():
        while (n := jobs.get()) is not None:
            results[n] = work(n)
    pool = [threading.Thread(target=loop) for _ in range(6)]
    for t in pool:
        t.start()
    for n in range(50, 400, 14):
        jobs.put(n)
    for _ in pool:
        jobs.put(None)
    for t in pool:
        t.join()
    print('threads', digest(sorted(results.items())))


def processes(method):
    ctx = multiprocessing.get_context(method)
    base = bytes(range(256)) * 4096
    with ctx.Pool(2) as pool:
        print(method, digest(pool.map(in_child, [(n, base) for n in (100, 300, 500, 700)])))
    q = ctx.Queue()
    p = ctx.Process(target=q.put, args=(list(range(20000)),))
    p.start()
    print(method, 'queue', sum(q.get()))
    p.join()
    print(method, 'exit', p.exitcode, hashlib.md5(base).hexdigest())


def forks():
    heap = [bytearray(os.urandom(0) + bytes([i % 251]) * (i * 37 % 5000 + 1)) for i in range(2000)]
    before = digest(heap)
    for k in range(20):
        pid = os.fork()
        if pid == 0:
            for b in heap:
                b[0] = 255 - k
            heap.append(list(range(1000)))
            os._exit(k if digest(heap) != before else 99)
        for b in heap[::7]:
            b[0] ^= 0
        _, st = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(st) == k, st
    print('forks', before == digest(heap))


def files():
    db = sqlite3.connect(':memory:')
    db.execute('create table t(a integer, b text)')
    db.executemany('insert into t values(?, ?)', ((i, str(i) * 5) for i in range(5000)))
    print('sqlite', db.execute('select count(*), sum(a), max(b) from t where a % 3').fetchone())
    with tempfile.TemporaryFile() as f:
        f.write(b'\0' * 300000)
        f.flush()
        with mmap.mmap(f.fileno(), 0) as m:
            m[1000:1010] = b'0123456789'
            print('mmap', zlib.crc32(m))
    m = mmap.mmap(-1, 8 << 20)
    m[4 << 20] = 7
    print('anon', m[4 << 20], m[0])
    m.resize(16 << 20) if hasattr(m, 'resize') else None
    print('resized', m[4 << 20], len(m))
    buf = ctypes.create_string_buffer(1 << 20)
    ctypes.memset(buf, 65, len(buf))
    print('ctypes', zlib.crc32(buf.raw))


def main():
    for fn in (threads, forks, files):
        fn()
    out = subprocess.run([sys.executable, '-c', 'print(sum(range(10**6)))'], capture_output=True, check=True)
    print('subprocess', out.stdout.decode().strip())
    subprocess.run('echo shell | tr a-z A-Z; exit 0', shell=True, check=True)
    sys.stdout.flush()
    for method in ('fork', 'spawn'):
        processes(method)
        sys.stdout.flush()
    big = {i: ('v%d' % i) * 10 for i in range(150000)}
    print('dict', len(big), zlib.crc32(pickle.dumps(big)))
    del big
    gc.collect()
    grow = []
    for i in range(12):
        grow.append(bytes(1 << 20) + bytes([i]))
    print('blocks', zlib.crc32(b''.join(grow)))
    loop = []
    loop.append(loop)
    raise SystemExit(7)


if __name__ == '__main__':
    main()
