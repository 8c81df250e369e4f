# SPDX-License-Identifier: BSD-2-Clause
"""mariadb: threads for connections, InnoDB's pool of pages, kill -9 and what is read after it."""
import signal

import harness

FILL = '''create table t (id int primary key, k int, body text, key (k)) engine=innodb;
insert into t select seq, seq % 100, repeat(md5(seq), seq % 20) from seq_1_to_40000;
update t set body = concat(body, 'x') where id % 7 = 0; delete from t where id % 11 = 0;'''
ASK = 'select count(*), sum(length(body)), sum(crc32(body)) from t where k < 20; check table t extended;'
JOIN = 'select count(*) from (select distinct a.k, b.body from t a join t b on a.k = b.k where b.id < 3000) s;'


def run(ctx):
    harness.need('mariadbd', 'mariadb', 'mariadb-install-db')
    user = harness.as_nobody(ctx)
    data, sock = ctx.path('data'), ctx.path('sock')
    ctx.run(['mariadb-install-db', '--no-defaults', '--datadir=' + data, '--auth-root-authentication-method=normal', '--skip-test-db'],
            record='status', timeout=300, **user)

    def start():
        proc = ctx.popen([harness.which('mariadbd'), '--no-defaults', '--datadir=' + data, '--socket=' + sock, '--skip-networking',
                          '--pid-file=' + ctx.path('pid'), '--innodb-buffer-pool-size=64M'], **user)
        ctx.wait_for(lambda: ctx.run(['mariadb', '--no-defaults', '-uroot', '-S', sock, '-e', 'select 1'], record=None, **user).status == 0,
                     'mariadb', 120)
        return proc

    def ask(text, label):
        ctx.run(['mariadb', '--no-defaults', '-uroot', '-S', sock, '-N', '-B', 'mysql', '-e', text], label=label, timeout=300, **user)

    server = start()
    for text, label in ((FILL, 'fill'), (ASK, 'ask'), (JOIN, 'join')):
        ask(text, label)
    server.kill()
    server.wait()
    server = start()
    ask(ASK, 'after the crash')
    ctx.stop(server, signal.SIGTERM, label='mariadb', timeout=120)
