# SPDX-License-Identifier: BSD-2-Clause
# Two programs and one budget of DRAM on a real kernel: what a bandwidth-sensitive newcomer wishes
# for is moved away from under a CPU-bound one, page by page; when the newcomer ends, the other's
# best pages come up again. Where pages are says the kernel (numa_maps), not the library.
. ./check.sh
patience=${patience:-300}

start() { # NAME DESCRIPTOR CLASS: pl_pages, driven through a pipe
    mkfifo /tmp/$1.in
    HYBRID_CLASS=$3 HYBRID_STATS=/tmp/$1.json HYBRID_REGISTRY=/tmp/registry HYBRID_DRAM=32M \
        HYBRID_DRAM_SHARED=32M HYBRID_COUNTERS=off HYBRID_MIGRATE=lazy HYBRID_INTERVAL=100ms \
        HYBRID_MIGRATE_INTERVAL=300ms HYBRID_MIGRATE_CORE=100 HYBRID_START=0 HYBRID_PM=auto \
        LD_PRELOAD=$lib ./pl_pages </tmp/$1.in >/tmp/$1.out 2>&1 &
    eval "$1=$!; exec $2>/tmp/$1.in"
}

answers() { # NAME NUMBER: so many so far, all of them good
    grep -v '^ok$' /tmp/$1.out && return 1
    [ "$(grep -c '^ok$' /tmp/$1.out)" -ge "$2" ]
}

mib() { # PID NODE: memory of its own that it has there
    awk -v node="N$2=" '/ anon=/ { for (i = 1; i <= NF; i++) if (index($i, node) == 1)
            pages += substr($i, length(node) + 1) }
        END { print int(pages / 256) }' /proc/$1/numa_maps
}

where() {
    for who in "$@"; do
        eval "pid=\$$who"
        echo "$who: $(mib $pid 0) MiB on DRAM, $(mib $pid 1) MiB on PM"
    done
}

has() { # NAME NODE -ge|-le MIB
    eval "pid=\$$1"
    [ "$(mib "$pid" $2)" $3 $4 ]
}

start holder 5 cpu
echo "big 28" >&5
check "a CPU-bound program has written its memory" waits $patience answers holder 1
check "it is on DRAM" waits $patience has holder 0 -ge 26
check "none of it on PM" has holder 1 -le 1
start newcomer 6 bandwidth
printf '%s\n' "big 20" "hot 0 16" >&6
check "a bandwidth-sensitive one comes" waits $patience answers newcomer 2
check "pages of the first one move to PM" waits $patience has holder 1 -ge 10
where holder newcomer
./hybridctl status --registry /tmp/registry | sed 's/^/     /'
check "the newcomer's come to DRAM" waits $patience has newcomer 0 -ge 14
where holder newcomer
echo calm >&6
exec 6>&-
check "it ends with all that it wrote" wait $newcomer
check "and has answered so" answers newcomer 3
echo "hot 0 28" >&5
check "what the first one uses now comes up again" waits $patience has holder 0 -ge 26
check "and leaves PM" waits $patience has holder 1 -le 1
where holder
echo calm >&5
exec 5>&-
check "it ends with all that it wrote" wait $holder
check "and has answered so" answers holder 3
for who in holder newcomer; do
    echo "     report of the $who: $(reported /tmp/$who.json up_bytes) bytes up, $(reported /tmp/$who.json down_bytes) down"
done
check "its report knows of the pages that went down" test "$(reported /tmp/holder.json down_bytes)" -ge $((10 << 20))
check "and up" test "$(reported /tmp/holder.json up_bytes)" -ge $((10 << 20))
exit $failed
