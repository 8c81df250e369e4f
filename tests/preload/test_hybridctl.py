#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hybridctl as its user meets it: output, exit statuses, what the program gets.

    test_hybridctl.py --ctl FILE --lib libhybrid.so --static FILE [unittest arguments]
"""
import argparse
import fcntl
import json
import os
import random
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

OPTIONS = None  # paths, from the command line
NOTHING_OF_OURS = {k: v for k, v in os.environ.items()
                   if not k.startswith(("HYBRID", "LD_PRELOAD"))}


def ctl(*args, env=None, **kw):
    return subprocess.run([OPTIONS.ctl, *args], env={**NOTHING_OF_OURS, **(env or {})}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, **kw)


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="hybridctl-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.registry = self.dir + "/registry"

    def path(self, name, text=None, mode=0o644):
        path = os.path.join(self.dir, name)
        if text is not None:
            with open(path, "w") as f:
                f.write(text)
            os.chmod(path, mode)
        return path

    def run_(self, *args, **kw):
        return ctl("run", "--library", OPTIONS.lib, "--registry", self.registry, *args, **kw)

    def ends(self, done, status, *said):
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        for text in said:
            self.assertIn(text, done.stderr)
        if status:
            for line in done.stderr.splitlines():
                self.assertTrue(line.startswith("hybridctl"), line)


class Commands(Case):
    def test_without_a_command_help_goes_to_stderr(self):
        done = ctl()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("doctor", done.stderr)

    def test_help_fits_80_columns(self):
        commands = re.findall(r"(?m)^  ([a-z]+)  ", ctl("--help").stdout)
        self.assertGreater(len(commands), 10)
        for command in commands:
            long = [line for line in ctl("help", command).stdout.splitlines() if len(line) > 80]
            self.assertEqual(long, [], command)

    def test_help_and_version(self):
        for args in (["--help"], ["help"]):
            self.assertIn("status", ctl(*args).stdout)
        for command in ("run", "status", "doctor", "options"):
            for args in (["help", command], [command, "--help"]):
                done = ctl(*args)
                self.assertEqual(done.returncode, 0)
                self.assertTrue(done.stdout.startswith("Usage: hybridctl " + command), done.stdout)
        self.assertRegex(ctl("--version").stdout, r"^hybridctl \d+\.\d+\.\d+\n$")

    def test_help_after_the_program_belongs_to_the_program(self):
        done = self.run_("--pm", "emulated", "--", "/bin/echo", "--help-me", "-h")
        self.assertEqual(done.stdout, "--help-me -h\n")

    def test_misspelt_command(self):
        self.ends(ctl("docter"), 2, "did you mean 'doctor'?")
        self.ends(ctl("xyzzy"), 2, "--help")
        self.ends(ctl("help", "statsu"), 2, "did you mean 'status'?")

    def test_a_full_disk_is_not_success(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([OPTIONS.ctl, "options"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, env=NOTHING_OF_OURS)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cannot write", done.stderr)


class Table(Case):
    def test_json_and_text_have_every_option(self):
        table = json.loads(ctl("options", "--json").stdout)
        names = [o["env"] for o in table]
        self.assertGreaterEqual(len(names), 15)
        self.assertEqual(len(names), len(set(names)))
        text = ctl("options").stdout
        for o in table:
            self.assertIn(o["env"] + "=" + o["allowed"], text)
            self.assertGreater(len(o["help"]), 20)

    def test_one_option_in_every_spelling(self):
        for name in ("HYBRID_DRAM_SHARED", "dram_shared", "dram-shared", "DRAM_SHARED"):
            done = ctl("options", name)
            self.assertEqual(done.returncode, 0, name)
            self.assertTrue(done.stdout.startswith("HYBRID_DRAM_SHARED\n"), done.stdout)
        self.assertEqual(len(json.loads(ctl("options", "--json", "pm").stdout)), 1)

    def test_unknown_option(self):
        self.ends(ctl("options", "polcy"), 2, "did you mean HYBRID_POLICY?")
        self.ends(ctl("options", "a", "b"), 2)

    def test_run_takes_every_option_of_the_table(self):
        example = {"policy": "pm", "class": "cpu", "pm": "none", "dram": "64M",
                   "dram-shared": "50%", "dram-allocator": "next", "profile": "none",
                   "profile-path": "/nowhere", "registry": "none", "stats": "0", "verbose": "0",
                   "strict": "0", "start": "1M", "mmap-min": "2M", "sites": "off",
                   "site-min": "40K", "site-sample": "1M"}
        for o in json.loads(ctl("options", "--json").stdout):
            name = o["env"][len("HYBRID_"):].lower().replace("_", "-")
            value = example.get(name, o["default"])
            done = ctl("run", "--library", OPTIONS.lib, "--%s=%s" % (name, value), "/usr/bin/env")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("%s=%s\n" % (o["env"], value), done.stdout)


class Run(Case):
    def test_exit_status_and_arguments_are_the_programs(self):
        done = self.run_("--pm", "emulated", "--", "sh", "-c", 'printf "%s|" "$@"; exit 41', "x",
                         "a b", "", "--dram")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (41, "a b||--dram|", ""))

    def test_a_signal_is_the_programs(self):
        done = self.run_("--pm", "emulated", "sh", "-c", "kill -TERM $$")
        self.assertEqual(done.returncode, -signal.SIGTERM)

    def test_the_program_is_the_process_itself(self):
        p = subprocess.Popen([OPTIONS.ctl, "run", "-q", "--library", OPTIONS.lib, "--registry",
                              "none", "sh", "-c", "echo $$"], stdout=subprocess.PIPE, text=True,
                             env=NOTHING_OF_OURS)
        self.assertEqual(p.communicate()[0].strip(), str(p.pid))

    def test_settings_reach_the_program(self):
        done = self.run_("--pm=emulated:1G", "--set", "dram=64M", "--set", "HYBRID_START=0",
                         "--strict", "env")
        for text in ("HYBRID_PM=emulated:1G\n", "HYBRID_DRAM=64M\n", "HYBRID_START=0\n",
                     "HYBRID_STRICT=1\n", "HYBRID_REGISTRY=" + self.registry + "\n",
                     "LD_PRELOAD=" + os.path.realpath(OPTIONS.lib) + "\n"):
            self.assertIn(text, done.stdout)

    def test_the_command_line_beats_the_environment(self):
        done = self.run_("--pm", "none", "env", env={"HYBRID_PM": "rubbish"})
        self.ends(done, 0)
        self.assertIn("HYBRID_PM=none\n", done.stdout)

    def test_an_existing_preload_stays(self):
        other = "/lib/x86_64-linux-gnu/libm.so.6"
        if not os.path.exists(other):
            self.skipTest("no " + other)
        done = self.run_("--pm", "none", "env", env={"LD_PRELOAD": other})
        self.assertIn("LD_PRELOAD=%s:%s\n" % (os.path.realpath(OPTIONS.lib), other), done.stdout)

    def test_wrong_values_name_what_is_allowed(self):
        for args, said in ((["--policy", "fast"], "first-fit"), (["--dram", "-1"], "size"),
                           (["--dram", "101%"], "percentage"), (["--class", ""], "bandwidth"),
                           (["--pm", "node:x"], "node:N"), (["--stats="], "HYBRID_STATS"),
                           (["--set", "dram"], "NAME=VALUE"), (["--set", "drm=1"], "HYBRID_DRAM"),
                           (["--polisy", "pm"], "--policy"), (["--dram"], "needs a value"),
                           (["-z"], "-z"), (["--check=1"], "no value")):
            done = self.run_(*args, *(["true"] if args != ["--dram"] else []))
            self.ends(done, 2, said)
            self.assertEqual(done.stdout, "")
            self.assertNotIn("is used instead", done.stderr)

    def test_wrong_values_of_the_environment_and_contradictions(self):
        self.ends(self.run_("true", env={"HYBRID_DRAM": "lots"}), 2, "HYBRID_DRAM")
        self.ends(self.run_("--policy", "pm", "--pm", "none", "true"), 2, "contradicts")

    def test_memory_that_is_not_there(self):
        self.ends(self.run_("--pm", "node:63", "true"), 2, "node 63 does not exist")
        self.ends(self.run_("--pm", "file:" + self.path("gone"), "true"), 2, "No such file")
        self.ends(self.run_("--pm", "file:" + self.path("f", ""), "true"), 2, "Not a directory")

    def test_profiles(self):
        self.ends(self.run_("--profile", "nosuch", "true"), 2, "no nosuch.ini in")
        self.ends(self.run_("--profile", self.path("p.ini"), "true"), 2, "cannot be read")
        good = self.path("good.ini", "[app]\nexe = sh\nclass = latency\n[options]\ndram = 77M\n")
        done = self.run_("--check", "--profile", good, "sh")
        self.ends(done, 0, "HYBRID_DRAM=77M (profile)", "HYBRID_CLASS=latency (profile)")
        self.ends(self.run_("--check", "--profile", good, "true"), 0, "another program")
        found = self.run_("--check", "--profile-path", self.dir, "--profile", "good", "sh")
        self.ends(found, 0, "HYBRID_DRAM=77M (profile)")
        bad = self.path("bad.ini", "[options]\ndram = lots\n")
        self.ends(self.run_("--profile", bad, "sh"), 2, "lots")

    def test_no_second_memory_is_said_once(self):
        if ctl("doctor").returncode == 0:
            self.skipTest("this machine has a second memory")
        self.assertIn("no second memory", self.run_("true").stderr)
        self.assertEqual(self.run_("-q", "true").stderr, "")
        self.assertEqual(self.run_("--policy", "off", "true").stderr, "")

    def test_check_explains_and_starts_nothing(self):
        mark = self.path("mark")
        done = self.run_("--check", "--pm", "emulated", "--dram", "1G", "touch", mark)
        self.ends(done, 0)
        self.assertFalse(os.path.exists(mark))
        for text in ("PM ", "called PM", "1.0 GiB of", "HYBRID_DRAM=1G (environment)", "outcome"):
            self.assertIn(text, done.stderr)
        self.ends(self.run_("-v", "--pm", "emulated", "touch", mark), 0, "outcome")
        self.assertTrue(os.path.exists(mark))


class Programs(Case):
    def test_not_found(self):
        self.ends(self.run_("no-such-program-here"), 127, "no such program")
        self.ends(self.run_(self.path("nothing")), 127)
        self.ends(self.run_(""), 127)
        self.ends(self.run_(), 2, "which program?")

    def test_not_executable(self):
        self.ends(self.run_(self.path("plain", "x")), 126, "Permission denied")
        self.ends(self.run_(self.dir), 126, "directory")
        lost = self.path("lost", "#!/no/such/interpreter\n", 0o755)
        self.ends(self.run_(lost), 126, "/no/such/interpreter")

    def test_static(self):
        self.ends(self.run_(OPTIONS.static), 126, "statically linked")
        done = self.run_("--force", "--pm", "none", OPTIONS.static)
        self.assertEqual((done.returncode, done.stdout), (7, "static\n"))
        self.assertIn("warning", done.stderr)

    def test_script(self):
        script = self.path("script", "#!/bin/sh\necho script $1\nexit 3\n", 0o755)
        done = self.run_("--pm", "none", script, "x")
        self.assertEqual((done.returncode, done.stdout), (3, "script x\n"))
        static = self.path("static-script", "#! %s\n" % OPTIONS.static, 0o755)
        self.ends(self.run_(static), 126, "statically linked")

    def test_32_bit(self):
        with open("/bin/true", "rb") as f:
            elf = bytearray(f.read())
        elf[4] = 1  # EI_CLASS: ELFCLASS32
        path = self.path("small")
        with open(path, "wb") as f:
            f.write(elf)
        os.chmod(path, 0o755)
        self.ends(self.run_(path), 126, "32-bit")

    def test_damaged_files_are_refused_not_crashed_on(self):
        with open("/bin/true", "rb") as f:
            good = f.read()
        rnd = random.Random(1)
        for round_ in range(60):
            elf = bytearray(good[:rnd.choice((5, 64, 200, 4096, len(good)))])
            for _ in range(rnd.randrange(8)):
                elf[rnd.randrange(5, min(len(elf), 900)) if len(elf) > 5 else 4] = rnd.randrange(256)
            path = self.path("damaged%d" % round_)
            with open(path, "wb") as f:
                f.write(elf)
            os.chmod(path, 0o755)
            done = self.run_("--check", "-q", "--pm", "none", path)
            self.assertIn(done.returncode, (0, 126), (round_, done.stderr))

    def test_setuid_is_warned_of(self):
        if os.getuid() != 0:
            self.skipTest("only root can make a setuid program of another user")
        path = self.path("privileged")
        shutil.copy("/bin/true", path)
        os.chown(path, 65534, 65534)
        os.chmod(path, 0o4755)
        self.assertTrue(os.stat(path).st_mode & stat.S_ISUID)
        done = self.run_("--pm", "none", path)
        self.ends(done, 0, "setuid")

    def test_the_library(self):
        self.ends(ctl("run", "--library", self.path("no.so"), "true"), 125, "cannot be preloaded")
        self.ends(ctl("run", "--library", self.path("t.so", "x"), "true"), 125, "shared library")
        os.mkdir(self.path("a b"))
        shutil.copy(OPTIONS.lib, self.path("a b/libhybrid.so"))
        self.ends(ctl("run", "--library", self.path("a b/libhybrid.so"), "true"), 125, "space")
        done = ctl("run", "-q", "env", env={"HYBRIDCTL_LIBRARY": OPTIONS.lib})
        self.assertIn("LD_PRELOAD=" + os.path.realpath(OPTIONS.lib), done.stdout)

    def test_the_library_of_the_build_is_found(self):
        beside = os.path.join(os.path.dirname(OPTIONS.ctl), "../shim/libhybrid.so")
        if not os.path.exists(beside):
            self.skipTest("hybridctl does not lie in a build folder")
        done = ctl("run", "-q", "env")
        self.assertIn("LD_PRELOAD=" + os.path.realpath(beside), done.stdout)


class Status(Case):
    # fills the DRAM limit and goes on in PM
    PROGRAM = "b = [bytearray(1 << 20) for _ in range(64)]; print('up', flush=True); input()"

    def test_no_registry(self):
        done = ctl("status", "--registry", self.registry)
        self.assertEqual(done.returncode, 1)
        self.assertIn("No registry at " + self.registry, done.stdout)
        self.assertFalse(os.path.exists(self.registry))
        told = json.loads(ctl("status", "--json", "--registry", self.registry).stdout)
        self.assertEqual((told["exists"], told["participants"]), (False, []))

    def test_no_registry_file(self):
        path = self.path("rubbish", "x" * 100, 0o600)
        done = ctl("status", "--registry", path)
        self.ends(done, 1, "no registry")
        with open(path) as f:
            self.assertEqual(f.read(), "x" * 100)

    def test_wrong_arguments(self):
        self.ends(ctl("status", "--watch", "0"), 2, "seconds")
        self.ends(ctl("status", "extra"), 2)

    def start(self):
        p = subprocess.Popen([OPTIONS.ctl, "run", "--library", OPTIONS.lib, "--registry",
                              self.registry, "--pm", "emulated", "--policy", "first-fit", "--dram",
                              "24M", "--start", "0", "--class", "bandwidth", "--dram-shared",
                              "256M", "--",
                              sys.executable, "-c", self.PROGRAM], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True, env=NOTHING_OF_OURS)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        self.addCleanup(p.stdin.close)
        self.assertEqual(p.stdout.readline(), "up\n")
        return p

    def participant(self, pid):
        """What is told of pid, as soon as that is all of its PM (it publishes now and then)."""
        told = {}
        end = time.monotonic() + 400
        while time.monotonic() < end:
            told = json.loads(ctl("status", "--json", "--registry", self.registry).stdout)
            for entry in told["participants"]:
                if entry["pid"] == pid and entry["pm_bytes"] >= 36 << 20:
                    return told, entry
            time.sleep(0.1)
        self.fail("process %d never appeared with its PM: %s" % (pid, told))

    def test_a_participant_comes_and_goes(self):
        p = self.start()
        told, entry = self.participant(p.pid)
        self.assertEqual(told["dram_budget"], 256 << 20)
        self.assertEqual(entry["class"], "bandwidth")
        self.assertTrue(16 << 20 <= entry["dram_bytes"] <= 256 << 20, entry)
        self.assertGreaterEqual(told["total"]["pm_bytes"], entry["pm_bytes"])
        text = ctl("status", "--registry", self.registry).stdout
        self.assertRegex(text, r"(?m)^ *%d .* bandwidth " % p.pid)
        self.assertIn("256 MiB", text)
        p.communicate("\n", timeout=400)
        self.assertEqual(p.returncode, 0)
        told = json.loads(ctl("status", "--json", "--registry", self.registry).stdout)
        self.assertNotIn(p.pid, [e["pid"] for e in told["participants"]])


class Doctor(Case):
    def setUp(self):
        super().setUp()
        self.told = json.loads(ctl("doctor", "--json").stdout)
        self.found = {f["name"]: f for f in self.told["findings"]}

    def state(self, name):
        return self.found[name]["state"]

    def test_it_agrees_with_the_kernel(self):
        with open("/sys/kernel/mm/transparent_hugepage/enabled") as f:
            huge = re.search(r"\[(\w+)\]", f.read()).group(1)
        self.assertIn("is " + huge, self.found["huge pages"]["text"])
        with open("/proc/sys/vm/max_map_count") as f:
            self.assertIn(f.read().strip(), self.found["max_map_count"]["text"])
        release = tuple(int(x) for x in re.findall(r"\d+", os.uname().release)[:2])
        if release < (6, 7):  # newer kernels may be built without
            self.assertEqual(self.state("PAGEMAP_SCAN"), "missing")
        idle = os.path.exists("/sys/kernel/mm/page_idle/bitmap")
        self.assertEqual(self.state("idle page bitmap") == "ok", idle and os.getuid() == 0)

    def test_soft_dirty_agrees_with_the_kernels_configuration(self):
        if not os.path.exists("/proc/config.gz"):
            self.skipTest("the kernel does not tell its configuration")
        text = subprocess.check_output(["gzip", "-dc", "/proc/config.gz"], text=True)
        built = "CONFIG_MEM_SOFT_DIRTY=y" in text
        self.assertEqual(self.state("soft-dirty"), "ok" if built else "missing")

    def test_missing_things_have_advice(self):
        self.assertEqual(self.told["can_steer"], ctl("doctor").returncode == 0)
        for f in self.told["findings"]:
            self.assertIn(f["state"], ("ok", "missing", "info"))
            self.assertTrue(f["text"])
            if f["state"] == "missing" and f["section"] in ("libraries", "placement", "limits"):
                self.assertTrue(f["fix"], f)

    def test_emulated_memory_can_be_steered(self):
        if self.state("memkind") != "ok":
            self.skipTest("memkind is not installed")
        done = ctl("doctor", env={"HYBRID_PM": "emulated"})
        self.assertEqual(done.returncode, 0)
        self.assertIn("can place memory", done.stdout)
        off = ctl("doctor", env={"HYBRID_PM": "emulated", "HYBRID_POLICY": "off"})
        self.assertEqual(off.returncode, 1)

    def test_limits_are_seen(self):
        done = subprocess.run(["sh", "-c", "ulimit -v 4000000; exec %s doctor --json" % OPTIONS.ctl],
                              text=True, stdout=subprocess.PIPE, env=NOTHING_OF_OURS)
        found = {f["name"]: f for f in json.loads(done.stdout)["findings"]}
        self.assertEqual(found["address space"]["fix"], "ulimit -v unlimited")

    def test_lines_fit_the_terminal_but_for_commands(self):
        ours, theirs = os.openpty()
        self.addCleanup(os.close, ours)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        child = subprocess.Popen([OPTIONS.ctl, "doctor"], stdout=theirs, stdin=subprocess.DEVNULL, env=dict(os.environ, NO_COLOR="1"))
        os.close(theirs)
        told = b""
        try:
            while more := os.read(ours, 4096):
                told += more
        except OSError: # its end, on Linux
            pass
        child.wait(timeout=60)
        lines = told.decode().splitlines()
        self.assertGreater(len(lines), 20)
        self.assertEqual([line for line in lines if len(line) > 80 and "  > " not in line], [])

    def test_no_colours_in_a_pipe(self):
        self.assertNotIn("\033", ctl("doctor").stdout)

    def test_users_of_a_group_are_told_how_to_share(self):
        fix = self.found["users of a group"]["fix"]
        self.assertIn("'f /dev/shm/libhybrid-GROUP 0660 root GROUP'", fix)

    def test_a_delegated_share_of_the_cache_is_told(self):
        group = self.dir + "/libhybrid"
        os.makedirs(self.dir + "/info/L3")
        os.mkdir(group)
        env = {"HYBRID_CACHE": "group:" + group}
        self.assertIn("offers no shares of the last-level cache", ctl("doctor", env=env).stdout)
        for name, text in (("info/L3/cbm_mask", "fff"), ("info/L3/min_cbm_bits", "2"), ("tasks", "")):
            self.path(name, text + "\n", 0o600)
        how = ctl("doctor", env=env).stdout
        self.assertIn("mkdir %s/libhybrid" % self.dir, how)
        self.assertIn("chgrp USERS tasks libhybrid/tasks libhybrid/schemata", how)
        self.path("libhybrid/schemata", "L3:0=fff;1=fff\n", 0o600)
        self.path("libhybrid/tasks", "", 0o600)
        self.assertIn("fill 2 of its 12 ways", ctl("doctor", env=env).stdout)
        self.path("libhybrid/schemata", "L3:0=f;1=f\n", 0o600)
        self.assertIn("fill 4 of its 12 ways", ctl("doctor", env=env).stdout)

    def test_a_corrupt_registry_is_told(self):
        path = self.path("rubbish", "x", 0o600)
        done = ctl("doctor", env={"HYBRID_REGISTRY": path})
        self.assertIn("rm " + path, done.stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ctl", required=True, type=os.path.abspath)
    parser.add_argument("--lib", required=True, type=os.path.abspath)
    parser.add_argument("--static", required=True, type=os.path.abspath)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0]] + rest)
