# SPDX-License-Identifier: BSD-2-Clause
"""duckdb and polars from PyPI, each with an allocator of its own linked in and with threads."""
import os
import subprocess

import harness

PACKAGES = ('duckdb', 'polars')
SCRIPTS = (r'''
import duckdb
c = duckdb.connect(); c.execute("set threads = 4"); c.execute("set enable_progress_bar = false")
c.execute("create table t as select i as id, i % 1000 as k, repeat(md5(i::varchar), (i % 5)::int) as body from range(600000) r(i)")
print(c.execute("select count(*), sum(length(body)), sum(k) from t where k < 300").fetchall())
print(c.execute("select k, count(*), max(body) from t group by k order by k limit 5").fetchall())
print(c.execute("select count(*) from t a join t b on a.id = b.id + 1 where a.body > b.body").fetchall())
c.execute("delete from t where id % 3 = 0"); print(c.execute("select count(*) from t").fetchall())
''', r'''
import polars as p
n = 600000
f = p.DataFrame({"id": range(n), "k": [i % 1000 for i in range(n)], "body": ["b%d" % (i * 7919 % n) for i in range(n)]})
g = f.group_by("k").agg(p.col("id").sum(), p.col("body").max()).sort("k"); print(g.head(4).rows(), g.shape)
print(f.join(f.with_columns(p.col("id") + 1), on="id").filter(p.col("body") > p.col("body_right")).height)
print(f.sort("body").head(3).rows(), f.lazy().filter(p.col("k") < 300).select(p.col("id").sum()).collect().item())
''')


def prepare(cache):
    folder = os.path.join(cache, 'pypi')
    if not os.path.isdir(os.path.join(folder, PACKAGES[-1])):
        got = subprocess.run(['/usr/bin/python3', '-m', 'pip', 'install', '--quiet', '--target', folder, *PACKAGES], check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if got.returncode:
            raise harness.Skip('PyPI does not give duckdb and polars: ' + got.stdout[-200:])


def run(ctx):
    for script in SCRIPTS:
        ctx.run(['/usr/bin/python3', '-c', script], env={'PYTHONPATH': os.path.join(ctx.cache, 'pypi')}, timeout=240)
