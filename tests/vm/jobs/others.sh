# SPDX-License-Identifier: BSD-2-Clause
# Somebody else (root, migratepages) moves the pages of programs under the library: it is noticed,
# the account follows, no write is lost, and moves that are undone are not made again and again.
. ./check.sh
registry=/tmp/others-registry
set="HYBRID_CLASS=bandwidth HYBRID_DRAM=64M HYBRID_DRAM_SHARED=64M HYBRID_REGISTRY=$registry"

account() { # TIER: MiB of the only program, as it tells the others
    ./hybridctl status --json --registry $registry | tr ',' '\n' |
        sed -n "s/.*\"$1_bytes\": *\([0-9]*\).*/\1/p" | head -n 1 | awk '{ print int($1 / 1048576) }'
}

agrees() { # the account and numa_maps, but for our own memory, what heaps hold ready, and leases
    dram=$(account dram) pm=$(account pm) on_dram=$(mib $app 0) on_pm=$(mib $app 1)
    echo "$on_dram and $on_pm MiB; in the account: $dram and $pm MiB"
    [ $((on_dram - dram)) -le 4 ] && [ $((dram - on_dram)) -le 4 ] &&
        [ $((on_pm - pm)) -le 4 ] && [ $((pm - on_pm)) -le 4 ]
}

drive app 5 $set
printf '%s\n' "big 12" "hot 0 2" >&5
check "a program has written its memory" waits $patience answers app 2
check "all of it is on DRAM" waits $patience has app 0 -ge 12
check "the account says so" waits $patience agrees
check "somebody moves it to PM" migratepages $app 0 1
where app
check "what is in use comes up again" waits $patience has app 0 -ge 1
check "the account agrees" waits $patience agrees
check "that is undone" migratepages $app 0 1
where app
check "it comes up all the same, later" waits $patience has app 0 -ge 1
check "the account agrees" waits $patience agrees
echo calm >&5
exec 5>&-
check "it ends with all that it wrote" wait $app
check "and has answered so" answers app 3
tell_others() { # REPORT
    words=
    for field in passes asked_pages found_pages undone_pages truces; do
        words="$words $(reported $1 $field) $field,"
    done
    echo "     report:${words%,}"
}
tell_others /tmp/app.json
check "the moves were found" test "$(reported /tmp/app.json found_pages)" -ge $((10 * 256))
check "the second one has undone moves" test "$(reported /tmp/app.json undone_pages)" -ge 200
check "moves rested for that" test "$(reported /tmp/app.json truces)" -ge 1

# Under writers of all kinds, and two movers.
check "a disk, for O_DIRECT" disk
env HYBRID_POLICY=first-fit HYBRID_START=0 HYBRID_PM=auto HYBRID_DRAM=1M HYBRID_INTERVAL=300ms \
    HYBRID_MIGRATE=eager HYBRID_MIGRATE_INTERVAL=300ms HYBRID_MIGRATE_CORE=100 \
    HYBRID_STATS=/tmp/others.json LD_PRELOAD=$lib ./lost_writes -n -m 300 -s "${seconds:-4}" \
    -d /mnt/disk preload >/tmp/others.out 2>&1 &
writers=$!
rounds=0
while kill -0 $writers 2>/dev/null; do
    migratepages $writers 0 1 2>/dev/null
    migratepages $writers 1 0 2>/dev/null
    rounds=$((rounds + 1))
    sleep 1
done
check "no write is lost while two move the same pages" wait $writers
sed 's/^/       /' /tmp/others.out
echo "     moved by the other: $rounds times to and fro"
tell_others /tmp/others.json
exit $failed
