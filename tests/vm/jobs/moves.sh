# SPDX-License-Identifier: BSD-2-Clause
# Pages move to and fro between the nodes while they are written in every way; what must
# not move stays.
. ./check.sh
check "a disk, for O_DIRECT" disk
check "locked, pinned, shared, forked, guard, stack, device pages" ./vm_special
sed 's/^/       /' /tmp/check.out
# However slow this machine is: so many pages.
check "no write is lost while pages move" ./lost_writes -w -m 3000 -s "${seconds:-8}" -d /mnt/disk numa
sed 's/^/       /' /tmp/check.out
exit $failed
