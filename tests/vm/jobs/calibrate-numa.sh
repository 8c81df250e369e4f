# SPDX-License-Identifier: BSD-2-Clause
# The loops of hybridctl calibrate bind their memory to the nodes, which they check page by page;
# figures come from the firmware until they are measured, and a machine file is found in /etc.
. ./check.sh
measure() {
    printf '%s\n' 'chase dram 1 5' 'chase pm 1 5' 'update pm 1 5' 'read pm 2 5' 'rwrite pm 1 5' \
        'write dram 1 5 beside rwrite pm 1' | ./hybrid-measure --bytes 16777216 "$@" >/tmp/measured || {
        cat /tmp/measured
        return 1
    }
    cat /tmp/measured
    [ "$(grep -c '^lines_per_us=[0-9.]* ns=[0-9.]* busy=' /tmp/measured)" -eq 6 ]
}
check "measures" measure
check "finds the node" says "pm_is=NUMA node 1: " measure
check "it is no ordinary memory" says "ordinary=0" measure
check "tells what was measured" says "pm=node" measure
check "a node as named" says "pm_is=NUMA node 1: as named" measure --pm node:1
check "a node that is not there" status 2 ./hybrid-measure --pm node:5
check "no node left for DRAM" status 2 ./hybrid-measure --pm node:0,1
check "figures are the firmware's" says "HMAT, what it lacks as" ./hybridctl doctor
check "300 ns" says "read 300 ns, 10.2 GB/s" ./hybridctl doctor
mkdir -p /etc/libhybrid
{
    echo "[machine]"
    echo "version = 1"
    echo "measured = 2026-11-21"
    grep -E '^(cpu|pm|dram-mib|pm-mib)=' /tmp/measured
    for section in dram pm; do
        printf '[%s]\nread-ns=123\nwrite-ns=80\nseq-read-mbs=1000\nseq-write-mbs=900\n' $section
    done
} >/etc/libhybrid/machine.ini
check "a machine file" ./hybrid-measure --check /etc/libhybrid/machine.ini
check "is used" says "measured 2026-11-21 (/etc/libhybrid/machine.ini)" ./hybridctl doctor
check "it has the numbers" says "read 123 ns" ./hybridctl doctor
chmod 666 /etc/libhybrid/machine.ini
check "not when others may write to it" says "HMAT, what it lacks as" ./hybridctl doctor
chmod 644 /etc/libhybrid/machine.ini
sed -i 's/^dram-mib=.*/dram-mib=77/' /etc/libhybrid/machine.ini
check "nor of another machine" says "its DRAM has 77 MiB" ./hybridctl doctor
rm /etc/libhybrid/machine.ini
exit $failed
