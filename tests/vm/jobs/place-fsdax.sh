# SPDX-License-Identifier: BSD-2-Clause
# Files on a DAX file system as the second memory.
. ./check.sh
pm=file:/mnt/pmem1
before=$(df -k /mnt/pmem1 | awk 'END { print $4 }')
check "POLICY=pm: pages of no node" placed pm ./vm_place none
check "POLICY=dram: node 0" placed dram ./vm_place 0
check "fork: independent memories" placed pm ./vm_fork
check "plain fork" ./vm_fork
check "PM full: goes on in DRAM" status 3 placed pm ./vm_full 300
check "after a fork memory comes back on a file" \
    placed pm env HYBRID_INTERVAL=50ms ./fl_back fork
check "no write is lost, with forks" placed pm ./lost_writes -s 2 \
    -x "/proc/self/mem" -x "process_vm_writev" -x "process_vm_writev by another process" preload-blind
check "a page in a pipe holds nobody up" placed pm env HYBRID_INTERVAL=50ms ./fl_back pipe
mkdir /mnt/small
check "a small tmpfs" mount -t tmpfs -o size=160m none /mnt/small
for case in back full; do
    pm=file:/mnt/small
    check "what is freed goes back to the file system: $case" \
        placed pm env HYBRID_INTERVAL=50ms ./fl_back $case /mnt/small
done
pm=file:/mnt/pmem1
after=$(df -k /mnt/pmem1 | awk 'END { print $4 }')
check "no file stays behind" test "$before" -le "$((after + 64))"
check "doctor finds the mount" says "/mnt/pmem1 (ext4" ./hybridctl doctor
check "hybridctl run --pm file:" ./hybridctl run --library $lib --pm $pm --policy pm --start 0 \
    -- ./vm_place none
pm=file:/mnt/nowhere
check "a folder that is not there: the program runs" placed pm ./vm_place 0
exit $failed
