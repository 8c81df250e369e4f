# SPDX-License-Identifier: BSD-2-Clause
"""sqlite3: a file and a memory database, indexes, recursive queries, dump and restore."""
import harness

SQL = '''
create table n(i integer primary key, k text, v real);
with recursive c(i) as (select 1 union all select i + 1 from c where i < 60000)
insert into n select i, printf('key%06d', (i * 7919) % 60000), i / 3.0 from c;
create index nk on n(k);
select count(*), sum(i), printf('%.3f', sum(v)), min(k), max(k) from n;
create table g as select substr(k, 1, 6) p, count(*) c, group_concat(i) l from n group by p;
select count(*), sum(length(l)), max(c) from g;
begin; update n set v = v * 2 where i % 5 = 0; delete from n where i % 11 = 0; rollback;
update n set k = k || 'x' where i % 7 = 0; delete from n where i % 13 = 0;
select count(*), printf('%.3f', total(v)) from n where k like '%x';
select a.i, b.k from n a join n b on b.i = (a.i * 31) % 60000 + 1 where a.i < 2000 order by b.k, a.i limit 5;
vacuum; pragma integrity_check;
select hex(zeroblob(10)), length(zeroblob(20000000)), json_array(1, 'a', 2.5);
'''


def run(ctx):
    harness.need('sqlite3')
    ctx.run(['sqlite3', 'file.db'], stdin=SQL.encode())
    ctx.run(['sqlite3', ':memory:'], stdin=SQL.encode())
    dump = ctx.run(['sqlite3', 'file.db', '.dump'], record='status')
    ctx.record('dump', str(len(dump.out)))
    ctx.run(['sqlite3', 'copy.db'], stdin=dump.out)
    ctx.run(['sqlite3', 'copy.db', 'select count(*), sum(i), total(v) from n; pragma integrity_check'])
    ctx.run(['sqlite3', ':memory:', 'select broken from nowhere'])
