# SPDX-License-Identifier: BSD-2-Clause
# Pages move to and fro between the nodes while they are written in every way; what must
# not move stays.
. ./check.sh
mkdir -p /mnt/disk
check "a disk, for O_DIRECT" mkfs.ext4 -q -F -b 4096 -O ^has_journal /dev/vda
check "its mount" mount -t ext4 /dev/vda /mnt/disk
check "locked, pinned, shared, forked, guard, stack, device pages" ./vm_special
sed 's/^/       /' /tmp/check.out
# However slow this machine is: so many pages.
check "no write is lost while pages move" ./lost_writes -w -m 3000 -s "${seconds:-20}" -d /mnt/disk numa
sed 's/^/       /' /tmp/check.out
exit $failed
