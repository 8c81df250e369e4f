#!/bin/busybox sh
# SPDX-License-Identifier: BSD-2-Clause
# The first process of the test machine: mounts, modules, persistent memory as
# vm_pm= on the kernel's command line says (one word for each NVDIMM: kmem or
# fsdax), then the job's scripts, one after the other. Ends the machine with a
# status of our own: that a guest panics or powers off must not look like success.
export PATH=/bin HOME=/root
/bin/busybox mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null

finish() {
    echo "VM-RESULT rc=$1"
    sync
    vm_exit "$1"
    poweroff -f
}

need() { # what, command...: the machine is not what it should be without it
    what=$1
    shift
    "$@" >/tmp/need.log 2>&1 && return
    cat /tmp/need.log
    echo "VM-SETUP failed: $what"
    finish 120
}

while read -r module; do
    insmod "/lib/modules/$module.ko" || echo "init: no module $module"
done </etc/modules

# The output port appears some time before it can be opened, and a shell ends
# when a redirection of exec fails: try in a subshell.
tries=0
until (exec >/dev/vport0p1) 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 6000 ] || break
    usleep 10000
done
[ $tries -lt 6000 ] && exec >/dev/vport0p1 2>&1

# Newer kernels would online the memory as ordinary memory before daxctl comes.
echo offline >/sys/devices/system/memory/auto_online_blocks
pm=$(sed -n 's/.*vm_pm=\([a-z,]*\).*/\1/p' /proc/cmdline)
n=0
for kind in $(echo "$pm" | tr ',' ' '); do
    case $kind in
    kmem)
        need "devdax $n" ndctl create-namespace -f -e namespace$n.0 -m devdax -M mem
        need "system-ram $n" daxctl reconfigure-device --mode=system-ram dax$n.0
        ;;
    fsdax)
        need "fsdax $n" ndctl create-namespace -f -e namespace$n.0 -m fsdax -M mem
        need "mkfs $n" mkfs.ext4 -q -F -O ^has_journal -b 4096 /dev/pmem$n
        mkdir -p /mnt/pmem$n
        need "mount $n" mount -t ext4 -o dax /dev/pmem$n /mnt/pmem$n
        ;;
    devdax) # left for the user to give to the system
        need "devdax $n" ndctl create-namespace -f -e namespace$n.0 -m devdax -M mem
        ;;
    esac
    n=$((n + 1))
done
read -r uptime _ </proc/uptime
echo "VM-READY $uptime s, $(uname -r)"

cd /job || finish 121
failed=0
for script in run/*; do
    begin=${uptime%.*}
    sh "$script" </dev/null
    rc=$?
    read -r uptime _ </proc/uptime
    echo "VM-JOB ${script#run/} rc=$rc, $((${uptime%.*} - begin)) s"
    [ $rc -eq 0 ] || failed=1
done
finish $failed
