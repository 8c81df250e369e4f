# SPDX-License-Identifier: BSD-2-Clause
"""Kernel and QEMU for the test machine, by apt, without root and without installing.

The packages are downloaded through the source lists of this machine into a
cache folder and unpacked there; apt's state is private to that folder.

Only two pairs of QEMU and kernel are safe (docs/vm.md): both from backports, or
both from stable. A mixture (QEMU 7.2 with kernel 6.12) oopses at random.
"""
import fcntl
import getpass
import glob
import json
import os
import re
import shutil
import struct
import subprocess

TOOLS = ["busybox-static", "ndctl", "daxctl", "numactl", "e2fsprogs"]
PAIRS = ("backports", "stable")


class CannotHave(Exception):
    """The machine cannot be had here (no network, no apt, another processor)."""


def cache_dir():
    explicit = os.environ.get("HYBRID_VM_CACHE")
    if explicit:
        return explicit
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "libhybrid-vm")


def codename():
    with open("/etc/os-release") as f:
        found = re.search(r"^VERSION_CODENAME=(\w+)", f.read(), re.M)
    if not found:
        raise CannotHave("/etc/os-release names no VERSION_CODENAME")
    return found.group(1)


def _stanzas_deb822(text):
    for block in re.split(r"\n\s*\n", text):
        fields = {}
        key = None
        for line in block.splitlines():
            if line.startswith("#"):
                continue
            if line[:1].isspace() and key:  # a field that goes on, such as an inline key
                fields[key] += "\n" + line
            elif ":" in line:
                key, value = line.split(":", 1)
                fields[key] = value.strip()
        if "deb" in fields.get("Types", "").split() and fields.get("Enabled", "yes") != "no":
            yield fields


def _stanzas_one_line(text):
    for line in text.splitlines():
        m = re.match(r"deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+(.*)", line.strip())
        if not m:
            continue
        fields = {"Types": "deb", "URIs": m[2], "Suites": m[3], "Components": m[4]}
        for option in (m[1] or "").split():
            key, _, value = option.partition("=")
            if key == "signed-by":
                fields["Signed-By"] = value
        yield fields


def debian_sources(release, with_backports):
    """The machine's own entries for this release, as deb822 text."""
    found = []
    for path in ["/etc/apt/sources.list"] + sorted(glob.glob("/etc/apt/sources.list.d/*")):
        if path.endswith((".list", ".sources")) and os.path.isfile(path):
            with open(path) as f:
                parse = _stanzas_deb822 if path.endswith(".sources") else _stanzas_one_line
                found += parse(f.read())
    found = [s for s in found if any(x.split("-")[0].split("/")[0] == release
                                     for x in s.get("Suites", "").split())]
    main = [s for s in found if release in s["Suites"].split()]
    if not main:
        raise CannotHave("no apt source for %s on this machine" % release)
    if with_backports:
        found.append(dict(main[0], Suites=release + "-backports"))
    keep = ("Types", "URIs", "Suites", "Components", "Signed-By")
    return "\n\n".join("\n".join("%s: %s" % (k, s[k]) for k in keep if k in s)
                       for s in found) + "\n"


# The others wait meanwhile; on a full disk apt-get once did not end at all.
APT_SECONDS = 600


class Apt:
    """apt with lists and archives of its own; package states are the machine's."""

    def __init__(self, folder, pair):
        release = codename()
        os.makedirs(folder + "/lists/partial", exist_ok=True)
        os.makedirs(folder + "/cache/archives/partial", exist_ok=True)
        sources = folder + "/machine.sources"
        with open(sources, "w") as f:
            f.write(debian_sources(release, pair == "backports"))
        self.options = ["-o", "Dir::Etc::sourcelist=" + sources, "-o", "Dir::Etc::sourceparts=-",
                        "-o", "Dir::State::lists=" + folder + "/lists",
                        "-o", "Dir::Cache=" + folder + "/cache", "-o", "Debug::NoLocking=1",
                        "-o", "APT::Sandbox::User=" + getpass.getuser(), "-q"]
        if pair == "backports":
            self.options += ["-o", "APT::Default-Release=" + release + "-backports"]

    def run(self, tool, *args, cwd=None):
        try:
            done = subprocess.run([tool] + self.options + list(args), cwd=cwd, text=True, timeout=APT_SECONDS,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env=dict(os.environ, LC_ALL="C", DEBIAN_FRONTEND="noninteractive"))
        except subprocess.TimeoutExpired:
            raise CannotHave("%s %s has not ended in %d s" % (tool, args[0], APT_SECONDS)) from None
        if done.returncode:
            raise CannotHave("%s %s: %s" % (tool, " ".join(args[:3]), done.stderr.strip()[-400:]))
        return done.stdout

    def missing(self, packages):
        """What an installation of `packages` would add here: [name=version]."""
        text = self.run("apt-get", "-s", "--no-install-recommends", "install", *packages)
        return ["%s=%s" % (m[1], m[2])
                for m in re.finditer(r"^Inst (\S+) (?:\[\S+\] )?\((\S+) ", text, re.M)]

    def kernel(self):
        text = self.run("apt-cache", "depends", "linux-image-cloud-amd64")
        found = re.search(r"Depends: (linux-image-\d\S*)", text)
        if not found:
            raise CannotHave("apt knows no linux-image-cloud-amd64")
        return found.group(1)


def extract_kernel(bzimage, target):
    """The ELF kernel inside a bzImage: boots by PVH and saves the guest the unpacking."""
    with open(bzimage, "rb") as f:
        data = f.read()
    setup_sectors = data[0x1F1] or 4
    offset, length = struct.unpack_from("<II", data, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    payload = data[start:start + length]
    # zstd, xz and lz4 payloads end in 4 bytes of length that their tools reject
    for magic, tool, tail in ((b"\x28\xb5\x2f\xfd", "zstd", 4), (b"\xfd7zXZ", "xz", 4),
                              (b"\x02\x21\x4c\x18", "lz4", 4), (b"\x1f\x8b", "gzip", 0)):
        if payload.startswith(magic):
            if not shutil.which(tool):
                raise CannotHave("%s is needed to unpack the kernel" % tool)
            out = subprocess.run([tool, "-dcq"], input=payload[:len(payload) - tail],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
            if not out.startswith(b"\x7fELF"):
                raise RuntimeError("%s: %s payload holds no ELF kernel" % (bzimage, tool))
            with open(target, "wb") as f:
                f.write(out)
            return
    raise RuntimeError("%s: unknown compression" % bzimage)


def library_path(root):
    folders = [root + sub for sub in ("/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu",
                                      "/usr/lib", "/lib")]
    folders += glob.glob(root + "/usr/lib/x86_64-linux-gnu/*/")  # pulseaudio and its like
    return ":".join(d for d in folders if os.path.isdir(d))


def find_tool(root, name):
    folders = [root + d for d in ("/usr/bin", "/bin", "/usr/sbin", "/sbin")]
    path = shutil.which(name, path=":".join(folders + [os.environ.get("PATH", ""), "/usr/sbin",
                                                       "/sbin", "/bin"]))
    if not path:
        raise CannotHave("no %s: neither here nor among the packages fetched" % name)
    return path


def _fetch_pair(folder, pair, say):
    work = folder + ".new"
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work + "/debs")
    apt = Apt(os.path.abspath(work + "/apt"), pair)
    say("apt lists (%s)" % pair)
    apt.run("apt-get", "update")
    kernel = apt.kernel()
    names = apt.missing(["qemu-system-x86"] + TOOLS)
    say("download of %s and %d packages" % (kernel, len(names)))
    apt.run("apt-get", "download", kernel, *names, cwd=work + "/debs")
    for deb in sorted(glob.glob(work + "/debs/*.deb")):
        subprocess.run(["dpkg", "-x", deb, work + "/root"], check=True)
    images = glob.glob(os.path.join(work, "root", "boot", "vmlinuz-*"))
    extract_kernel(images[0], work + "/vmlinux")
    qemu = find_tool(work + "/root", "qemu-system-x86_64")
    version = subprocess.run([qemu, "--version"], text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT,
                             env=dict(os.environ, LD_LIBRARY_PATH=library_path(work + "/root")))
    number = re.search(r"version (\d+)\.(\d+)", version.stdout)
    if version.returncode or not number:
        raise CannotHave("QEMU does not start: " + version.stdout.strip()[-300:])
    if pair == "backports" and int(number[1]) < 10:
        raise CannotHave("backports gave QEMU %s.%s, unsafe with its kernel" % number.groups())
    shutil.rmtree(work + "/debs")
    shutil.rmtree(work + "/apt")
    with open(work + "/pair.json", "w") as f:
        json.dump({"pair": pair, "kernel": kernel, "qemu": number[0]}, f)
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(work, folder)


def fetch(say, pairs=None):
    """The folder with vmlinux, root/ (unpacked packages) and pair.json."""
    if os.uname().machine != "x86_64":
        raise CannotHave("the test machine is an x86-64 one")
    for tool in ("apt-get", "apt-cache", "dpkg"):
        if not shutil.which(tool):
            raise CannotHave("no %s here" % tool)
    chosen = os.environ.get("HYBRID_VM_PAIR")
    pairs = pairs or ([chosen] if chosen else PAIRS)
    top = cache_dir()
    os.makedirs(top, exist_ok=True)
    with open(top + "/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two tests may start at once
        for pair in pairs:
            if os.path.exists("%s/%s/pair.json" % (top, pair)):
                return "%s/%s" % (top, pair)
        reasons = []
        for pair in pairs:
            try:
                _fetch_pair("%s/%s" % (top, pair), pair, say)
                return "%s/%s" % (top, pair)
            except CannotHave as reason:
                reasons.append("%s: %s" % (pair, reason))
        raise CannotHave("; ".join(reasons))
