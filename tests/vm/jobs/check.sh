# SPDX-License-Identifier: BSD-2-Clause
# For the jobs: check WHAT COMMAND... runs a command that must succeed and adds a
# line to the report; status, says, waits and placed make such commands.
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
