# SPDX-License-Identifier: BSD-2-Clause
"""grep, sed, awk, sort, tar and the compressors: the small programs of every shell script."""
SCRIPT = r'''
set -e
awk 'BEGIN { srand(7); for (i = 0; i < 40000; i++) printf "%d row%d %s\n", int(i * 2654435761 % 1000003), i, i % 97 }' > rows
sort -n rows | cksum; sort --parallel=4 -S 1M -k2,2 rows | cksum; sort -u -k3,3n rows | wc -l
grep -c 'row1[0-9]*7 ' rows; grep -E '(7|8|9)\1? row' -o rows | sort | uniq -c | head -5
sed -n 's/\(row\)\([0-9]*\)/\2\1/p' rows | tail -3; cut -d' ' -f2 rows | rev | md5sum
awk '{ n[$3] += $1 } END { for (k in n) s += n[k]; print length(n), s }' rows
mkdir -p tree/a/b; split -l 1000 rows tree/a/b/part; cp -a tree tree2; diff -r tree tree2 && echo same
tar --sort=name --mtime=@0 --owner=0 --group=0 -cf t.tar tree; sha256sum t.tar
gzip -n -k t.tar; gzip -dc t.tar.gz | cmp - t.tar; bzip2 -k t.tar; bzip2 -dc t.tar.bz2 | cmp - t.tar
xz -T2 -1 -k t.tar; xz -dc t.tar.xz | cmp - t.tar; sha256sum t.tar.gz t.tar.bz2
mkdir out; tar -xf t.tar.xz -C out; diff -r tree out/tree && echo unpacked
find tree -type f | sort | xargs -n 3 -P 2 cat | wc -c; seq 300 | xargs -n 1 | wc -l
seq 30000 | factor | cksum; comm -12 <(seq 10 50 | sort) <(seq 40 90 | sort) | tr '\n' ' '; echo
date -u -d @1700000000; expr 12345678901234567890 \* 98765432109876543210; bc <<< '2^4000' | md5sum
'''


def run(ctx):
    ctx.run(['bash', '-c', SCRIPT], record='all')
