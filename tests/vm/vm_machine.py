# SPDX-License-Identifier: BSD-2-Clause
"""QEMU without KVM: machines with memories of two kinds."""
import json
import os
import re
import subprocess
import tempfile

from vm_fetch import find_tool, library_path

DRAM_MIB = 768
# kmem takes whole blocks of 128 MiB and loses the first: 512 MiB remain
NVDIMM_MIB = 640
FSDAX_MIB = 256
DISK_MIB = 32
TOPOLOGIES = {"ram2": "", "kmem": "kmem", "fsdax": "kmem,fsdax", "devdax": "devdax"}


def _hmat(initiator, target, latency_ns, bandwidth):
    common = "hmat-lb,initiator=%d,target=%d,hierarchy=memory," % (initiator, target)
    return ["-numa", common + "data-type=access-latency,latency=%d" % latency_ns,
            "-numa", common + "data-type=access-bandwidth,bandwidth=" + bandwidth]


def _ram(name, mib, share=False):
    return ["-object", "memory-backend-ram,id=%s,size=%dM%s" % (name, mib,
                                                               ",share=on" if share else "")]


def _nvdimm(n, mib):
    return _ram("nv%d" % n, mib, share=True) + ["-device",
                                                "nvdimm,id=nvdimm%d,memdev=nv%d,node=1" % (n, n)]


def memory_arguments(topology, cpus):
    args = _ram("m0", DRAM_MIB)
    node0 = ["-numa", "node,nodeid=0,memdev=m0,cpus=0-%d" % (cpus - 1)]
    distance = ["-numa", "dist,src=0,dst=1,val=28"]
    if topology == "ram2":
        args += ["-M", "q35,hmat=on", "-m", "%dM" % (2 * DRAM_MIB)] + _ram("m1", DRAM_MIB)
        args += node0 + ["-numa", "node,nodeid=1,memdev=m1,initiator=0"] + distance
    else:
        args += ["-M", "q35,nvdimm=on,hmat=on", "-m", "%dM,slots=4,maxmem=8G" % DRAM_MIB] + node0
        args += ["-numa", "node,nodeid=1,initiator=0"] + distance + _nvdimm(0, NVDIMM_MIB)
        if topology == "fsdax":
            args += _nvdimm(1, FSDAX_MIB)
    return args + _hmat(0, 0, 80, "100G") + _hmat(0, 1, 300, "10G")


class Result:
    def __init__(self, qemu_status, output, console, qemu_log):
        self.qemu_status = qemu_status  # None: the time was up
        self.output, self.console, self.qemu_log = output, console, qemu_log
        token = re.findall(r"^VM-RESULT rc=(\d+)", output, re.M)
        self.status = None
        # Both must agree: a panic or a power-off gives QEMU's status 0.
        if token and qemu_status is not None and qemu_status == 2 * int(token[-1]) + 1:
            self.status = int(token[-1])


def boot(folder, initrd, topology, cpus=2, seconds=240):
    """Run a machine until it ends itself."""
    root = folder + "/root"
    with open(folder + "/pair.json") as f:
        pair = json.load(f)["pair"]
    with tempfile.TemporaryDirectory(prefix="hybrid-vm-") as work:
        with open(work + "/initrd", "wb") as f:
            for part in initrd:
                f.write(part)
        with open(work + "/disk", "wb") as f:
            f.truncate(DISK_MIB << 20)
        command = [find_tool(root, "qemu-system-x86_64")]
        for data in ("/usr/share/qemu", "/usr/share/seabios"):
            for base in (root, ""):
                if os.path.isdir(base + data):
                    command += ["-L", base + data]
        # QEMU 7.2 emulates cmpxchg16b wrongly: oopses at random
        command += ["-cpu", "max" if pair == "backports" else "max,cx16=off"]
        command += ["-nodefaults", "-display", "none", "-monitor", "none", "-no-reboot",
                    "-accel", "tcg,thread=multi", "-smp", "%d,sockets=1" % cpus]
        command += memory_arguments(topology, cpus)
        command += ["-kernel", folder + "/vmlinux", "-initrd", work + "/initrd",
                    "-device", "isa-debug-exit,iobase=0xf4,iosize=4",
                    "-serial", "file:" + work + "/console", "-device", "virtio-serial-pci",
                    "-chardev", "file,id=out,path=" + work + "/output",
                    "-device", "virtserialport,chardev=out,name=out", "-append",
                    # On a busy machine the timer can come too late for the kernel's check of it.
                    "console=ttyS0 panic=-1 loglevel=4 tsc=reliable no_timer_check "
                    "transparent_hugepage=madvise vm_pm=" + TOPOLOGIES[topology]]
        # After the port: /dev/vport0p1 is so called because that is the first virtio device.
        command += ["-drive", "file=" + work + "/disk,if=none,id=disk,format=raw",
                    "-device", "virtio-blk-pci,drive=disk"]
        with open(work + "/qemu", "wb") as log:
            qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    env=dict(os.environ, LD_LIBRARY_PATH=library_path(root)))
            try:
                status = qemu.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                if qemu.poll() is None:
                    qemu.kill()
                    qemu.wait()

        def text(name):
            path = "%s/%s" % (work, name)
            if not os.path.exists(path):
                return ""
            with open(path, errors="replace") as f:
                return f.read()

        return Result(status, text("output"), text("console"), text("qemu"))
