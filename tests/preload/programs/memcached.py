# SPDX-License-Identifier: BSD-2-Clause
"""memcached under load from four connections; every value that comes back is compared."""
import os
import threading

import harness


class Client:
    def __init__(self, ctx, sock, seed):
        self.sock = ctx.connect(sock)
        self.file, self.seed, self.error, self.hits = self.sock.makefile('rb'), seed, None, 0

    def value(self, i, generation):
        size = (i * 7919 + self.seed) % (60000 if i % 40 == 0 else 1200) + 1
        return (b'%d.%d.%d|' % (self.seed, i, generation) * (size // 8 + 1))[:size]

    def line(self):
        return self.file.readline().rstrip(b'\r\n')

    def set(self, i, generation):
        v = self.value(i, generation)
        self.sock.sendall(b'set k%d.%d 0 0 %d\r\n%s\r\n' % (self.seed, i, len(v), v))
        if self.line() != b'STORED':
            raise harness.Broken('a value was not stored')

    def get(self, i, generation):
        self.sock.sendall(b'get k%d.%d\r\n' % (self.seed, i))
        head = self.line()
        if head == b'END':
            return
        data = self.file.read(int(head.split()[3]) + 2)[:-2]
        if self.line() != b'END' or data != self.value(i, generation):
            raise harness.Broken(f'k{self.seed}.{i} came back changed')
        self.hits += 1

    def work(self):
        try:
            for generation in range(3):
                for i in range(700):
                    self.set(i, generation)
                    if i % 3 == 0:
                        self.get(i // 2, generation)
                for i in range(0, 700, 2):
                    self.get(i, generation)
        except (harness.Broken, OSError) as e:
            self.error = e


def run(ctx):
    harness.need('memcached')
    sock = ctx.path('mc.sock')
    user = ['-u', 'root'] if os.getuid() == 0 else []
    proc = ctx.popen(['memcached', '-s', sock, '-t', '4', '-m', '64', '-c', '64', *user])
    clients = [Client(ctx, sock, n) for n in range(1, 5)]
    pool = [threading.Thread(target=c.work) for c in clients]
    for t in pool:
        t.start()
    for t in pool:
        t.join(120 * harness.SCALE)
    for c in clients:
        ctx.check(c.error is None, f'client {c.seed}: {c.error}')
        ctx.record(f'hits {c.seed}', c.hits)
    a = clients[0]
    for command, want in ((b'set n 0 0 1\r\n5', b'STORED'), (b'incr n 37', b'42'), (b'append n 0 0 1\r\n7', b'STORED'),
                          (b'delete n', b'DELETED'), (b'delete n', b'NOT_FOUND'), (b'flush_all', b'OK'), (b'nonsense', b'ERROR')):
        a.sock.sendall(command + b'\r\n')
        got = a.line()
        ctx.check(got == want, f'{command!r}: {got!r}')
    ctx.stop(proc, label='memcached')
