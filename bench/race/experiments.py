# SPDX-License-Identifier: BSD-2-Clause
"""What is raced: programs, cases, experiments. Data only.

A case is one emulated machine with so much DRAM, and the programs on it, in the order of
their launch. An experiment is a list of cases that belong into one figure.

The groups stand for those of papers/004, section III-C. Its text names the five programs of
group 1 and where Linux puts them; the members of groups 2 and 3 are in its figure 4 alone, so
ours are put together from the programs that the paper's text calls CPU-bound and
bandwidth-sensitive. As there: 8 threads each, all started together, each run once, and DRAM
goes to those launched first; the CPU-bound ones are."""
from dataclasses import dataclass, replace

MIB = 1 << 20


@dataclass(frozen=True)
class Program:
    """One workload (bench/workloads). `rounds` make its work 10 to 20 ms of virtual time on
    DRAM; `size` is its footprint in MiB; `cls` is what a user would tell libhybrid."""
    workload: str
    cls: str
    threads: int
    size: int
    rounds: int
    stands_for: str = ""

    def arguments(self):
        return ["--threads", str(self.threads), "--size", str(self.size),
                "--rounds", str(self.rounds)]


@dataclass(frozen=True)
class Case:
    name: str
    programs: tuple
    dram: int  # MiB of the machine, for all programs
    note: str = ""

    def footprint(self):
        return sum(p.size for p in self.programs)

    def dram_option(self):
        return f"{self.dram}M"

    def dram_bytes(self):
        return self.dram * MIB

    def parts(self):
        """DRAM and the rest."""
        return self.dram, max(self.footprint() - self.dram, 1)


@dataclass(frozen=True)
class Experiment:
    name: str
    title: str
    cases: tuple
    preset: str = "optane"
    settings: str = ""  # HYBRID_EMU_SET
    quick: bool = False
    without: tuple = ()  # strategies that are not raced here

    def on(self, preset):
        """The same on another emulated machine."""
        return replace(self, preset=preset)


# Virtual milliseconds on DRAM, alone, with 8 threads, are given behind each. lu_cb and
# fluidanimate are between the classes; the paper treats lu_cb as one that does without DRAM.

def mining(threads=8, size=6, rounds=1):  # 21
    return Program("mining", "cpu", threads, size, rounds, "freqmine")


def pricing(threads=8, size=6, rounds=1):  # 18
    return Program("pricing", "cpu", threads, size, rounds, "swaptions")


def lu(threads=8, size=4, rounds=1):  # 16
    return Program("lu", "cpu", threads, size, rounds, "lu_cb")


def strassen(threads=8, size=6, rounds=1):  # 12
    return Program("strassen", "cpu", threads, size, rounds, "fluidanimate")


def ocean(threads=8, size=8, rounds=7, stands_for="ocean_cp"):  # 12
    return Program("ocean", "bandwidth", threads, size, rounds, stands_for)


def cluster(threads=8, size=8, rounds=36):  # 11
    return Program("cluster", "bandwidth", threads, size, rounds, "streamcluster")


def fft(threads=8, size=10, rounds=2):  # 14
    return Program("fft", "bandwidth", threads, size, rounds, "NPB/FT")


def radix(threads=8, size=8, rounds=5):  # 12
    return Program("radix", "bandwidth", threads, size, rounds, "radix")


def gups(threads=8, size=8, rounds=3):  # 12
    return Program("gups", "bandwidth", threads, size, rounds, "canneal")


def single(workload, cls, title, threads, size, rounds, shares=(2, 5, 10), suffix=""):
    program = Program(workload, cls, threads, size, rounds)
    cases = tuple(Case(f"1/{share}", (program,), max(1, size // share),
                       f"DRAM for 1/{share} of {size} MiB") for share in shares)
    return Experiment(f"single-{workload}{suffix}", title, cases)


GROUPS = Experiment(
    "groups", "Groups of programs side by side (after paper 004, figure 4)",
    (Case("group 1", (mining(), strassen(), lu(), ocean(), cluster()), 17,
          "members as in the paper; strassen for fluidanimate"),
     Case("group 2", (pricing(), mining(), fft(), ocean(stands_for="NPB/MG")), 19,
          "members chosen here"),
     Case("group 3", (pricing(), mining(), radix(), gups()), 17, "members chosen here")))

# Without thread caps: to find the best numbers takes dozens of runs.
QUICK = Experiment(
    "quick", "The quick race",
    (Case("group", (mining(4, 4), cluster(4, 6, 30), ocean(4, 6, 8)), 12,
          "the CPU-bound program came first"),
     Case("cg, 1/5", (Program("cg", "bandwidth", 4, 10, 4),), 2, "DRAM for a fifth"),
     Case("multigrid, 1/2", (Program("multigrid", "bandwidth", 4, 8, 3),), 4,
          "all levels in one block"),
     Case("fft3d, 1/2", (Program("fft3d", "bandwidth", 4, 8, 3),), 4,
          "three large arrays, one allocation each")),
    quick=True, without=("threads",))

EXPERIMENTS = {e.name: e for e in (
    QUICK,
    GROUPS,
    single("cg", "bandwidth", "Sparse CG with little DRAM", 8, 20, 10),
    single("pagerank", "bandwidth", "PageRank with little DRAM", 8, 20, 4),
    single("ocean", "bandwidth", "Multigrid with little DRAM", 8, 18, 3),
    single("bfs", "bandwidth", "Breadth-first search with little DRAM", 8, 20, 2),
    single("kv", "latency", "Key-value store with little DRAM", 8, 20, 12),
    # How memory is asked for, and two of them ten times larger.
    single("multigrid", "bandwidth", "All levels of a grid in one block", 8, 10, 6),
    single("fft3d", "bandwidth", "3-D FFT, three large arrays", 8, 16, 4),
    single("hydro", "bandwidth", "Temporaries in each step", 8, 10, 8),
    single("graphbuild", "bandwidth", "A graph built, then searched", 8, 10, 10),
    single("lateuse", "bandwidth", "Blocks touched long after they were allocated", 8, 10, 64),
    single("multigrid", "bandwidth", "All levels in one block, ten times as large", 8, 110, 4,
           (2, 5), "-large"),
    single("fft3d", "bandwidth", "3-D FFT, ten times as large", 8, 160, 2, (2, 5), "-large"),
)}
