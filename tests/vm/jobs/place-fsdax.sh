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
after=$(df -k /mnt/pmem1 | awk 'END { print $4 }')
check "no file stays behind" test "$before" -le "$((after + 64))"
check "doctor finds the mount" says "/mnt/pmem1 (ext4" ./hybridctl doctor
check "hybridctl run --pm file:" ./hybridctl run --library $lib --pm $pm --policy pm --start 0 \
    -- ./vm_place none
pm=file:/mnt/nowhere
check "a folder that is not there: the program runs" placed pm ./vm_place 0
exit $failed
