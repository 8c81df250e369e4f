# SPDX-License-Identifier: BSD-2-Clause
# The library moves the pages of a program that knows nothing of it, as often as it can.
. ./check.sh
check "a disk, for O_DIRECT" disk
export HYBRID_DRAM=1M HYBRID_INTERVAL=300ms HYBRID_MIGRATE=eager
export HYBRID_MIGRATE_INTERVAL=300ms HYBRID_MIGRATE_CORE=100
check "no write is lost while the library moves pages" \
    placed first-fit ./lost_writes -m 32 -s "${seconds:-5}" -d /mnt/disk preload
sed 's/^/       /' /tmp/check.out
exit $failed
