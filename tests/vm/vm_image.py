# SPDX-License-Identifier: BSD-2-Clause
"""The initial ramdisk of the test machine: a base with tools and kernel modules,
and behind it a second archive with the job (the kernel unpacks both)."""
import glob
import lzma
import os
import re
import shlex
import stat
import subprocess

from vm_fetch import find_tool, library_path

# In the order of loading: insmod follows no dependencies.
MODULES = ("virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci "
           "virtio_console virtio_blk crc16 mbcache jbd2 crc32c_generic ext4 "
           "libnvdimm nfit nd_btt nd_pmem dax_pmem device_dax kmem").split()
LIBRARY_FOLDERS = ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64",
                   "/lib", "/usr/lib", "/usr/local/lib")


class Archive:
    """A cpio archive ("newc"); what is added first wins."""

    def __init__(self):
        self.parts = []
        self.names = set()

    def _add(self, name, mode, data):
        if name in self.names:
            return
        parent = os.path.dirname(name)
        if parent:
            self.folder(parent)
        self.names.add(name)
        raw = name.encode() + b"\0"
        fields = (len(self.names), mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0)
        head = b"070701" + b"".join(b"%08X" % f for f in fields) + raw
        self.parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]

    def folder(self, name):
        self._add(name, stat.S_IFDIR | 0o755, b"")

    def link(self, name, target):
        self._add(name, stat.S_IFLNK | 0o777, target.encode())

    def data(self, name, data, executable=False):
        self._add(name, stat.S_IFREG | (0o755 if executable else 0o644), data)

    def file(self, name, path):
        with open(path, "rb") as f:
            self.data(name, f.read(), os.access(path, os.X_OK))

    def finish(self):
        self._add("TRAILER!!!", 0, b"")
        body = b"".join(self.parts)
        return body + b"\0" * (-len(body) % 512)


def libraries_of(path, extra_path=""):
    """What the loader would open for an ELF file: [path]."""
    done = subprocess.run(["ldd", path], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          env=dict(os.environ, LD_LIBRARY_PATH=extra_path, LC_ALL="C"))
    missing = re.findall(r"^\s*(\S+) => not found", done.stdout, re.M)
    if missing:
        raise RuntimeError("%s needs %s" % (path, ", ".join(missing)))
    return re.findall(r"(?:=> |^\s+)(/\S+) \(0x", done.stdout, re.M)


def find_library(soname):
    for folder in LIBRARY_FOLDERS:
        if os.path.exists(folder + "/" + soname):
            return folder + "/" + soname
    raise RuntimeError("no %s on this machine" % soname)


def _is_elf(path):
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF"


def add_program(archive, name, path, extra_path=""):
    """A file and, if it is a dynamic one, its libraries (all into /lib)."""
    archive.file(name, path)
    if _is_elf(path):
        for library in libraries_of(path, extra_path):
            archive.file("lib/" + os.path.basename(library), library)


def _module(root, name):
    found = glob.glob("%s/lib/modules/*/kernel/**/%s.ko*" % (root, name), recursive=True)
    if not found:  # built in, or not of this kernel
        return None
    with open(found[0], "rb") as f:
        data = f.read()
    return lzma.decompress(data) if found[0].endswith(".xz") else data


def build_base(folder, init_script, vm_exit):
    """The archive that every job shares: bytes."""
    root = folder + "/root"
    libs = library_path(root)
    a = Archive()
    for name in ("proc", "sys", "dev", "tmp", "run", "mnt", "root", "job", "etc"):
        a.folder(name)
    a.folder("lib")
    for name, target in (("lib64", "lib"), ("sbin", "bin"), ("usr/bin", "../bin"),
                         ("usr/sbin", "../bin"), ("usr/lib", "../lib")):
        a.link(name, target)
    for tool in ("ndctl", "daxctl", "numactl", "migratepages", "mke2fs"):
        add_program(a, "bin/" + tool, find_tool(root, tool), libs)
    a.link("bin/mkfs.ext4", "mke2fs")
    a.file("bin/vm_exit", vm_exit)
    busybox = find_tool(root, "busybox")
    a.file("bin/busybox", busybox)
    for applet in subprocess.check_output([busybox, "--list"], text=True).split():
        a.link("bin/" + applet, "busybox")
    for config in (root + "/etc/mke2fs.conf", "/etc/mke2fs.conf"):
        if os.path.exists(config):
            a.file("etc/mke2fs.conf", config)
    a.data("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
    order = []
    for name in MODULES:
        data = _module(root, name)
        if data:
            a.data("lib/modules/%s.ko" % name, data)
            order.append(name)
    a.data("etc/modules", ("\n".join(order) + "\n").encode())
    # glibc opens it by name for pthread_cancel and backtrace: ldd does not see it
    a.file("lib/libgcc_s.so.1", find_library("libgcc_s.so.1"))
    with open(init_script, "rb") as f:
        a.data("init", f.read(), executable=True)
    return a.finish()


def build_job(scripts, files, libraries, settings=()):
    """scripts: run in this order; files: [(name, path)] in /job; libraries: sonames;
    settings: NAME=VALUE for the scripts."""
    a = Archive()
    text = "".join("%s=%s\n" % (n, shlex.quote(v)) for n, v in (s.split("=", 1) for s in settings))
    a.data("job/settings", text.encode())
    for n, script in enumerate(scripts):
        a.file("job/run/%02d-%s" % (n, os.path.basename(script)), script)
    for name, path in files:
        add_program(a, "job/" + name, path)
    for soname in libraries:
        add_program(a, "lib/" + soname, find_library(soname))
    return a.finish()
