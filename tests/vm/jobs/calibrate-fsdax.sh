# SPDX-License-Identifier: BSD-2-Clause
# Files with direct access are PM for hybrid-measure, files without are not.
. ./check.sh
measure() {
    printf '%s\n' 'chase pm 1 5' 'write pm 1 5' | ./hybrid-measure --bytes 16777216 --pm "$1"
}
check "fsdax is PM" says "ordinary=0" measure file:/mnt/pmem1
check "tmpfs is not" says "ordinary=1" measure file:/tmp
check "the kind of PM" says "pm=file" measure file:/mnt/pmem1
check "NVDIMM: optane" says "HMAT, what it lacks as optane" ./hybridctl doctor
check "no file stays" [ -z "$(find /mnt/pmem1 -type f)" ]
exit $failed
