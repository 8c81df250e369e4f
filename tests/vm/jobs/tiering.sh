# SPDX-License-Identifier: BSD-2-Clause
# Linux' own tiering (promotion by NUMA balancing, demotion) beside ours: no write is lost,
# and neither keeps the other busy.
. ./check.sh
check "a disk, for O_DIRECT" disk
balancing=/proc/sys/kernel/numa_balancing
demotion=/sys/kernel/mm/numa/demotion_enabled
if [ ! -w $balancing ] || [ ! -w $demotion ]; then
    echo "skipped: this kernel has no tiering"
    exit 0
fi
count() { # NAME: of /proc/vmstat
    sed -n "s/^$1 //p" /proc/vmstat
}

echo 2 >$balancing
echo 1 >$demotion
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
tuning=/sys/kernel/debug/sched/numa_balancing
if [ -d $tuning ]; then # seconds are long here
    echo 50 >$tuning/scan_delay_ms
    echo 100 >$tuning/scan_period_min_ms
    echo 500 >$tuning/scan_period_max_ms
fi
check "Linux' tiering is on" says 2 cat $balancing
hinted=$(count numa_hint_faults)
promoted=$(count pgpromote_success)
check "no write is lost between two movers" ./lost_writes -w -m 512 -s "${seconds:-4}" -d /mnt/disk numa
echo "     Linux: $(($(count pgpromote_success) - promoted)) pages up," \
    "$(($(count numa_hint_faults) - hinted)) looked at"

# What libhybrid places has a memory policy, which NUMA balancing respects. The program has
# 512 pages, of which a quarter is in use at a time.
hinted=$(count numa_hint_faults)
before=$(count pgmigrate_success)
promoted=$(count pgpromote_success)
export HYBRID_DRAM=1M HYBRID_INTERVAL=300ms HYBRID_MIGRATE=eager HYBRID_MIGRATE_INTERVAL=300ms
export HYBRID_MIGRATE_CORE=100 HYBRID_TRACE=/tmp/trace HYBRID_STATS=/tmp/tiering.json
read -r begin _ </proc/uptime
check "the same under the library" \
    placed first-fit ./lost_writes -s "${seconds:-6}" -d /mnt/disk preload
read -r end _ </proc/uptime
moved=$(($(count pgmigrate_success) - before))
ours=$(sed -n 's/.*"up": \([0-9]*\), "down": \([0-9]*\).*/\1 \2/p' /tmp/trace | tail -n 1 |
    awk '{ print ($1 + $2) / 4096 }')
echo "     moved in all: $moved pages; by libhybrid: ${ours:-none}; by Linux:" \
    "$(($(count pgpromote_success) - promoted)) up, $(($(count numa_hint_faults) - hinted)) looked at"
told="report:"
for field in passes pauses refused_pages regretted_pages; do
    told="$told $(reported /tmp/tiering.json $field) $field,"
done
echo "     ${told%,}"
echo 0 >$balancing
echo 0 >$demotion
# It takes longer than it was told where the machine is slow.
check "moves are bounded" test "$moved" -le $((512 * 4 * (${end%.*} - ${begin%.*} + 1)))
exit $failed
