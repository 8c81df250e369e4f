# SPDX-License-Identifier: BSD-2-Clause
"""redis-server under load; BGSAVE while writes go on must give a snapshot of one instant.

The writer walks over the keys w:0 .. w:N in order and gives round r the value r. A dump
that was taken at one instant therefore shows r for the first keys and r - 1 for the rest,
with one step between them: any page that parent and child share by mistake breaks that.
"""
import threading

import harness

KEYS, PAD = 1500, 900


class Client:
    def __init__(self, ctx, sock):
        self.sock = ctx.connect(sock)
        self.file = self.sock.makefile('rb')

    def send(self, *commands):
        out = bytearray()
        for c in commands:
            out += b'*%d\r\n' % len(c)
            for a in c:
                a = a if isinstance(a, bytes) else str(a).encode()
                out += b'$%d\r\n%s\r\n' % (len(a), a)
        self.sock.sendall(out)
        return [self.reply() for _ in commands]

    def __call__(self, *command):
        return self.send(command)[0]

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b'\r\n'):
            raise harness.Broken('the redis server closed the connection')
        kind, rest = line[:1], line[1:-2]
        if kind == b'+':
            return rest.decode()
        if kind == b'-':
            raise harness.Broken('redis says: ' + rest.decode())
        if kind == b':':
            return int(rest)
        if kind == b'$':
            n = int(rest)
            return None if n < 0 else self.file.read(n + 2)[:-2]
        return [self.reply() for _ in range(int(rest))]

    def close(self):
        self.file.close()
        self.sock.close()


def start(ctx, name, *options):
    sock = ctx.path(name + '.sock')
    proc = ctx.popen(['redis-server', '--port', '0', '--unixsocket', sock, '--dir', ctx.dir, '--save', '',
                      '--dbfilename', 'dump.rdb', '--enable-debug-command', 'yes', '--loglevel', 'warning',
                      '--logfile', ctx.path(name + '.log'), *options], name=name)
    client = Client(ctx, sock)
    ctx.wait_for(lambda: answers(client), 'redis answers')
    return proc, client, sock


def answers(client):
    try:
        return client('PING') == 'PONG'
    except harness.Broken as e:
        if 'LOADING' in str(e): # a dump, at its start
            return False
        raise


def load(c):
    """Static content of every type."""
    for lo in range(0, 8000, 500):
        c.send(*[('SET', f's:{i}', f'{i * 7919}' * (i % 60)) for i in range(lo, lo + 500)])
    for i in range(300):
        c.send(*[('HSET', f'h:{i}', f'f{j}', 'v' * (j * i % 90)) for j in range(30)],
               ('SADD', f't:{i}', *range(i, i * 2 + 5)), ('ZADD', f'z:{i}', *[x for j in range(40) for x in (j, f'm{j * i}')]),
               ('RPUSH', f'l:{i}', *['e' * (j * 3) for j in range(40)]))
    c.send(('SET', 'big', b'B' * 3000000), ('SETBIT', 'bits', 8000000, 1), ('APPEND', 'big', b'C' * 1000000),
           ('XADD', 'x', '1-1', 'a', '1'), ('PFADD', 'p', *range(2000)))
    for i in range(0, 8000, 3):
        c('DEL', f's:{i}')


class Writer(threading.Thread):
    def __init__(self, client):
        super().__init__(daemon=True)
        self.client, self.stop, self.rounds, self.error = client, False, 0, None

    def run(self):
        try:
            while not self.stop:
                value = b'%d:' % self.rounds + b'%c' % (97 + self.rounds % 26) * PAD
                for lo in range(0, KEYS, 50):
                    self.client.send(*[('SET', f'w:{k}', value) for k in range(lo, lo + 50)])
                self.rounds += 1
        except (harness.Broken, OSError) as e:
            self.error = e


def snapshot_of_one_instant(ctx, sock_name, options=()):
    proc, c, _ = start(ctx, sock_name, *options)
    values = []
    for lo in range(0, KEYS, 100):
        values += c.send(*[('GET', f'w:{k}') for k in range(lo, lo + 100)])
    rounds = []
    for k, v in enumerate(values):
        n, pad = v.split(b':', 1)
        ctx.check(pad == b'%c' % (97 + int(n) % 26) * PAD, f'w:{k} is torn in the dump: {v[:40]!r}')
        rounds.append(int(n))
    steps = sum(a != b for a, b in zip(rounds, rounds[1:]))
    ctx.check(steps <= 1 and rounds[0] - rounds[-1] in (0, 1),
              f'the dump is no snapshot of one instant: {steps} steps, from round {rounds[0]} to {rounds[-1]}')
    c.send(*[('DEL', f'w:{k}') for k in range(KEYS)])
    digest = c('DEBUG', 'DIGEST')
    c.close()
    ctx.stop(proc, label=sock_name)
    return digest


def run(ctx):
    harness.need('redis-server', 'redis-check-rdb', 'redis-benchmark')
    proc, c, sock = start(ctx, 'first')
    load(c)
    ctx.record('size', c('DBSIZE'))
    ctx.record('digest', c('DEBUG', 'DIGEST'))
    writer = Writer(Client(ctx, sock))
    writer.start()
    ctx.wait_for(lambda: writer.rounds >= 2 or writer.error, 'two rounds of writes')
    for delay in 30, 300, 3000: # us a key, so that writes go on meanwhile; more where the computer is busy
        c('CONFIG', 'SET', 'rdb-key-save-delay', delay)
        before = writer.rounds
        c('BGSAVE')
        ctx.wait_for(lambda: b'rdb_bgsave_in_progress:0' in c('INFO', 'persistence'), 'the end of BGSAVE', 60)
        after = writer.rounds
        if after > before or writer.error:
            break
    writer.stop = True
    writer.join(60)
    ctx.check(writer.error is None, f'the writer failed: {writer.error}')
    ctx.check(after > before, 'no write went on during BGSAVE: the test shows nothing')
    ctx.check(b'rdb_last_bgsave_status:ok' in c('INFO', 'persistence'), 'BGSAVE failed')
    check = ctx.run(['redis-check-rdb', 'dump.rdb'], record='status')
    ctx.check(b'RDB looks OK' in check.out, 'redis-check-rdb does not like the dump')
    c.send(*[('DEL', f'w:{k}') for k in range(KEYS)])
    live = c('DEBUG', 'DIGEST')
    ctx.record('digest after', live)
    ctx.check(snapshot_of_one_instant(ctx, 'second') == live, 'the reloaded dump has other content')
    bench = ctx.run(['redis-benchmark', '-s', sock, '-n', '8000', '-P', '8', '-c', '20', '-r', '2000', '-d', '200', '-q',
                     '-t', 'set,get,lpush,lpop,sadd,hset,zadd,lrange_100'], record='status')
    ctx.check(b'requests per second' in bench.out, 'redis-benchmark measured nothing')
    c('CONFIG', 'SET', 'appendonly', 'yes')
    ctx.wait_for(lambda: b'aof_rewrite_in_progress:0' in c('INFO', 'persistence')
                 and b'aof_last_bgrewrite_status:ok' in c('INFO', 'persistence'), 'the rewrite of the append-only file', 60)
    c('FLUSHALL')
    ctx.record('empty', c('DBSIZE'))
    c.close()
    ctx.stop(proc, label='redis')
