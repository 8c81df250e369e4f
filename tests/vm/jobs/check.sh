# SPDX-License-Identifier: BSD-2-Clause
# For the jobs: check WHAT COMMAND... runs a command that must succeed and adds a
# line to the report; status, says, waits, answers, has and placed make such commands.
. ./settings
failed=0
lib=/job/libhybrid.so

check() {
    what=$1
    shift
    "$@" >/tmp/check.out 2>&1 </dev/null
    rc=$?
    if [ $rc -eq 0 ]; then
        echo "ok   $what"
        [ "$(wc -l </tmp/check.out)" -le 6 ] || return 0 # only short ones tell something
    else
        echo "FAIL $what: status $rc"
        failed=1
    fi
    sed 's/^/       /' /tmp/check.out
}

status() { # NUMBER COMMAND...: succeeds when the command ends with that status
    want=$1
    shift
    "$@"
    got=$?
    [ $got -eq "$want" ] || echo "status $got instead of $want"
    [ $got -eq "$want" ]
}

says() { # TEXT COMMAND...: succeeds when the output has the text
    text=$1
    shift
    "$@" >/tmp/says.out 2>&1
    grep -qF -- "$text" /tmp/says.out && return
    echo "nothing says '$text':"
    cat /tmp/says.out
    return 1
}

waits() { # SECONDS COMMAND...: succeeds as soon as the command does
    left=$1
    shift
    until "$@"; do
        left=$((left - 1))
        [ $left -gt 0 ] || return 1
        sleep 1
    done
}

reported() { # FILE FIELD: a number of a report at exit
    sed -n "s/.*\"$2\": *\([0-9]*\).*/\1/p" "$1" | head -n 1
}

placed() { # POLICY COMMAND...: under the library, from the start
    policy=$1
    shift
    env HYBRID_POLICY="$policy" HYBRID_START=0 HYBRID_PM="${pm:-auto}" LD_PRELOAD=$lib "$@"
}

disk() { # a disk at /mnt/disk, for O_DIRECT
    [ -d /mnt/disk ] && return
    mkdir /mnt/disk && mkfs.ext4 -q -F -b 4096 -O ^has_journal /dev/vda && mount -t ext4 /dev/vda /mnt/disk
}

# --- programs that the job drives: pl_pages, by what is written to a descriptor ---

patience=${patience:-300}

drive() { # NAME DESCRIPTOR SETTING...: $NAME is its process
    who=$1
    descriptor=$2
    shift 2
    mkfifo /tmp/$who.in
    env HYBRID_STATS=/tmp/$who.json HYBRID_COUNTERS=off HYBRID_MIGRATE=lazy HYBRID_INTERVAL=100ms \
        HYBRID_MIGRATE_INTERVAL=300ms HYBRID_MIGRATE_CORE=100 HYBRID_START=0 HYBRID_PM=auto \
        LD_PRELOAD=$lib "$@" ./pl_pages </tmp/$who.in >/tmp/$who.out 2>&1 &
    eval "$who=$!; exec $descriptor>/tmp/$who.in"
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

where() { # NAME...
    for who in "$@"; do
        eval "pid=\$$who"
        echo "$who: $(mib $pid 0) MiB on DRAM, $(mib $pid 1) MiB on PM"
    done
}

has() { # NAME NODE -ge|-le MIB
    eval "pid=\$$1"
    [ "$(mib "$pid" $2)" $3 $4 ]
}
