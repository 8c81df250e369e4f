# SPDX-License-Identifier: BSD-2-Clause
# More memory than the PM node has: allocations go on in DRAM, nothing is lost.
. ./check.sh
free=$(sed -n 's/^Node 1 MemFree: *\([0-9]*\) kB/\1/p' /sys/devices/system/node/node1/meminfo)
check "PM full: goes on in DRAM" placed pm ./vm_full $((free / 1024 + 100))
check "and after that PM is empty again" placed pm ./vm_place 1
exit $failed
