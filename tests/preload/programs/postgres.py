# SPDX-License-Identifier: BSD-2-Clause
"""postgres: a process for each connection, shared memory, kill -9 of one and of all, and the files checked after it."""
import glob
import os
import signal

import harness

FILL = '''create table t as select g as id, repeat(md5(g::text), g % 20) as body, g % 100 as k from generate_series(1, 60000) g;
create unique index on t (id); create index on t (k, body); update t set body = body || 'x' where id % 7 = 0; delete from t where id % 11 = 0;'''
ASK = 'select count(*), sum(length(body)), md5(string_agg(body, \',\' order by id)) from t where k < 20;'
JOIN = 'set work_mem = \'1MB\'; select count(*) from (select a.k from t a join t b on a.k = b.id % 100 order by a.body limit 200000) s;'


def tool(name):
    found = sorted(glob.glob('/usr/lib/postgresql/*/bin/' + name))
    if not found:
        raise harness.Skip('not installed: postgresql')
    return found[-1]


def run(ctx):
    tool('postgres')
    user = harness.as_nobody(ctx) # it refuses to run as root
    data = ctx.path('data')
    ctx.run([tool('initdb'), '-D', data, '-U', 'u', '--no-locale', '-E', 'UTF8', '-N'], record='status', timeout=300, **user)

    def start():
        proc = ctx.popen([tool('postgres'), '-D', data, '-k', ctx.dir, '-c', 'listen_addresses=', '-c', 'max_parallel_workers_per_gather=2',
                          '-c', 'min_parallel_table_scan_size=0'], **user)
        ctx.wait_for(lambda: ctx.run([tool('pg_isready'), '-h', ctx.dir], record=None, **user).status == 0, 'postgres', 120)
        return proc

    def psql(text, label):
        return ctx.run([tool('psql'), '-h', ctx.dir, '-U', 'u', '-d', 'postgres', '-AtX', '-c', text], label=label, timeout=300, **user)

    server = start()
    psql(FILL, 'fill')
    psql(ASK, 'ask')
    psql(JOIN, 'join')
    # One of its processes is killed: the others end, too, and the server recovers.
    sleeper = ctx.popen([tool('psql'), '-h', ctx.dir, '-U', 'u', '-d', 'postgres', '-X', '-c', 'select pg_sleep(600)'], **user)
    asked = "select pid from pg_stat_activity where query like 'select pg_sleep%' and pid <> pg_backend_pid()"
    pid = ctx.wait_for(lambda: ctx.run([tool('psql'), '-h', ctx.dir, '-U', 'u', '-d', 'postgres', '-AtX', '-c', asked], record=None,
                                       **user).out.strip(), 'a sleeper')
    os.kill(int(pid), signal.SIGKILL)
    sleeper.wait()
    ctx.wait_for(lambda: ctx.run([tool('psql'), '-h', ctx.dir, '-U', 'u', '-d', 'postgres', '-AtX', '-c', 'select 1'], record=None,
                                 **user).status == 0, 'recovery', 120)
    psql(ASK, 'after the kill')
    server.kill()
    server.wait()
    ctx.wait_for(lambda: not children_of(data), 'the end of its processes', 120)
    server = start()
    psql(ASK, 'after the crash')
    ctx.run([tool('pg_amcheck'), '-h', ctx.dir, '-U', 'u', '--install-missing', '--heapallindexed', 'postgres'], label='pg_amcheck',
            timeout=300, **user)
    ctx.stop(server, signal.SIGINT, label='postgres', timeout=120)


def children_of(data):
    """Whoever still works in the folder."""
    at = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            if os.readlink(f'/proc/{pid}/cwd') == data:
                at.append(pid)
        except OSError:
            pass
    return at
