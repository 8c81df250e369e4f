# SPDX-License-Identifier: BSD-2-Clause
"""Who races: for each contender the environment of a program, and how a run proves that it
took place as asked. Pure: what was found on this computer comes in as a Setup."""
import math
from dataclasses import dataclass, field

# What little a program reads from the other memory: its binary, its stack.
STRAY = 0.005
# Of libhybrid's looks around, in virtual time: programs of 20 ms stand for some of minutes.
INTERVAL = "1ms"
# For runs of milliseconds: as if they had been longer.
SHORT = {"START": "0", "INTERVAL": INTERVAL, "CLASS_PERIOD": INTERVAL}
MEMTIER_SAYS = "MEMKIND_MEM_TIERING_LOG_INFO: "
OPTIMUM = "optimum"


@dataclass(frozen=True)
class Setup:
    """Paths, and the names of the options that this libhybrid has."""
    build: str
    libhybrid: str = ""
    memtier: str = ""
    placer: str = ""
    options: frozenset = frozenset()


@dataclass(frozen=True)
class Run:
    """One run of a case under one contender. `placement` is for the optimum: per program
    'd' or 'p', or for a single program a digit for each of its objects."""
    experiment: object
    case: object
    contender: object
    placement: str = ""
    profiles: tuple = ()  # the text of a profile for each program, or ()


@dataclass(frozen=True)
class Strategy:
    """A strategy of libhybrid. `option` must be there; `on` and `off` are settings with which
    it alone takes part or does not; `learns`: what its profile tells of a program (learn.py)."""
    name: str
    label: str
    option: str
    on: dict = field(default_factory=dict)
    off: dict = field(default_factory=dict)
    by_class: bool = False
    learns: str = ""


PROFILE = Strategy("profile", "profile", "PROFILE", learns="place")
# Those whose option this libhybrid does not have are named as not built.
STRATEGIES = (
    Strategy("class", "class", "CLASS", by_class=True),
    PROFILE,
    Strategy("threads", "thread caps", "THREADS", {"HYBRID_THREADS": "auto"},
             {"HYBRID_THREADS": "off"}, learns="threads"),
    Strategy("migrate", "migration", "MIGRATE", {"HYBRID_MIGRATE": "auto"},
             {"HYBRID_MIGRATE": "off"}),
    Strategy("company", "company", "ADMISSION", {"HYBRID_ADMISSION": "wait:60"},
             {"HYBRID_ADMISSION": "off"}, by_class=True),
)


def ratio(dram, rest):
    """Two whole numbers, as small as they get."""
    divisor = math.gcd(dram, rest) or 1
    return dram // divisor, rest // divisor


class Contender:
    name = label = ""
    missing = None      # why it cannot run here
    learns = ()          # what its profiles tell
    preload = ""
    loses_output = False  # what stdio holds at the end
    profiled = False     # wants a profile that was recorded before

    def env(self, run, index, scratch):
        raise NotImplementedError

    def problems(self, run, index, result):
        """What speaks against that this program ran as asked: lines for the user."""
        return []

    def said_too_much(self, stderr):
        """What it may not say on stderr."""
        return stderr.strip()


class Everything(Contender):
    """All memory on one medium, whatever it takes."""

    def __init__(self, tier):
        self.tier = tier
        self.name, self.label = f"all-{tier}", f"all on {tier.upper()}"

    def env(self, run, index, scratch):
        return {"HYBRID_EMU_PLACE": self.tier}

    def problems(self, run, index, result):
        other = result.reads("pm" if self.tier == "dram" else "dram")
        if other > STRAY * max(result.reads("dram") + result.reads("pm"), 1):
            return [f"{other} lines were read from the other memory"]
        return []


def first_touch(run):
    return {"HYBRID_EMU_PLACE": "first-touch", "HYBRID_EMU_DRAM": run.case.dram_option()}


class Linux(Contender):
    """Pages go to DRAM when first touched, as long as it has room, then to PM."""
    name, label = "linux", "Linux (first touch)"

    def env(self, run, index, scratch):
        return first_touch(run)


class Memtier(Contender):
    """libmemtier from memkind, with the ratio of DRAM to the rest. What it takes from
    'DRAM' beyond the capacity spills to PM, as under Linux."""

    def __init__(self, policy, label, setup):
        self.policy = policy
        self.name = "memtier-" + label
        self.label = "libmemtier " + label
        self.preload = setup.memtier
        if not setup.memtier:
            self.missing = "libmemtier.so.0 is not installed (package libmemkind0)"

    def env(self, run, index, scratch):
        dram, pm = ratio(*run.case.parts())
        return {**first_touch(run), "LD_PRELOAD": self.preload,
                "MEMKIND_MEM_TIERING_LOG_LEVEL": "1", "HYBRID_EMU_PM_DIR": scratch + "/pm",
                "MEMKIND_MEM_TIERS": f"KIND:DRAM,RATIO:{dram};KIND:FS_DAX,PATH:{scratch}/pm,"
                                     f"RATIO:{pm};POLICY:{self.policy}"}

    def problems(self, run, index, result):
        if MEMTIER_SAYS + "Memkind memtier lib loaded!" not in result.stderr:
            return ["libmemtier was not loaded"]
        return []

    def said_too_much(self, stderr):
        lines = [s for s in stderr.splitlines() if s and not s.startswith(MEMTIER_SAYS)]
        return "\n".join(lines)


class Hybrid(Contender):
    """libhybrid with some of its strategies; the programs share DRAM by a registry of
    their own. HYBRID_START=0: the programs are as much smaller as the machine is."""

    def __init__(self, name, label, strategies, setup):
        self.name, self.label = "hybrid-" + name, "libhybrid: " + label
        self.strategies = strategies
        self.preload = setup.libhybrid
        self.has_interval = "INTERVAL" in setup.options
        self.learns = tuple(s.learns for s in strategies if s.learns)
        self.off = {k: v for s in STRATEGIES if s.option in setup.options and s not in strategies
                    for k, v in s.off.items()}
        absent = sorted({s.option for s in strategies} - setup.options)
        if not setup.libhybrid:
            self.missing = "libhybrid.so is not built"
        elif absent:
            self.missing = "not built: no option HYBRID_" + ", HYBRID_".join(absent)

    def env(self, run, index, scratch):
        env = {**first_touch(run), "LD_PRELOAD": self.preload, "HYBRID_STRICT": "1",
               "HYBRID_PM": "emulated", "HYBRID_START": "0",
               "HYBRID_DRAM_SHARED": run.case.dram_option(),
               "HYBRID_REGISTRY": scratch + "/registry",
               "HYBRID_STATS": f"{scratch}/hybrid-{index}.json", **self.off,
               **({"HYBRID_INTERVAL": INTERVAL} if self.has_interval else {})}
        for strategy in self.strategies:
            env.update(strategy.on)
            if strategy.by_class:
                env["HYBRID_CLASS"] = run.case.programs[index].cls
        if run.profiles:
            env["HYBRID_PROFILE"] = f"{scratch}/profile-{index}.ini"
        return env

    def problems(self, run, index, result):
        report = result.hybrid
        if not report:
            return ["libhybrid made no report: it was not loaded"]
        found = []
        if report.get("state") != "steering":
            found.append(f"libhybrid was '{report.get('state')}' ({report.get('why')})")
        tiers = report.get("tiers", {})
        # Who never asks for DRAM joins with the first look around, which may be never.
        if tiers.get("dram", {}).get("peak") and not report.get("registry", {}).get("joined"):
            found.append("libhybrid did not join the registry")
        wanted = run.case.programs[index].cls
        if any(s.by_class for s in self.strategies) and report.get("class") != wanted:
            found.append(f"libhybrid took the program for '{report.get('class')}', not '{wanted}'")
        if run.profiles and not report.get("profile"):
            found.append("libhybrid did not use the profile")
        # What was moved there may not have been used afterwards.
        peak = tiers.get("pm", {}).get("peak", 0) - report.get("migration", {}).get("down_bytes", 0)
        if peak > 1 << 20 and result.reads("pm") + result.writebacks("pm") == 0:
            found.append("libhybrid put memory on PM that the emulated machine has on DRAM")
        return found


class Preloaded(Hybrid):
    """As it comes, all defaults: nothing is told of the programs, what libhybrid does it has to
    find out while they run. Only its looks are as frequent as the machine is small."""

    def __init__(self, setup):
        super().__init__("default", "just preloaded", (), setup)
        self.off = {}
        self.has_period = "CLASS_PERIOD" in setup.options

    def env(self, run, index, scratch):
        return {**super().env(run, index, scratch),
                **({"HYBRID_CLASS_PERIOD": INTERVAL} if self.has_period else {})}


class Optimum(Contender):
    """One static placement, to be tried with all others. Of a group: which programs may use
    DRAM, in the order of their launch and as long as it has room; the others are on PM. Of a
    single program: the memory of each of its large objects."""
    name, label = OPTIMUM, "best static placement"

    def __init__(self, setup):
        self.placer = setup.placer

    def env(self, run, index, scratch):
        if len(run.case.programs) > 1:
            return {**first_touch(run),
                    **({"HYBRID_EMU_PLACE": "pm"} if run.placement[index] == "p" else {})}
        return {**first_touch(run), "LD_PRELOAD": self.placer,
                "HYBRID_PLACE": run.placement, "HYBRID_PLACE_LIST": scratch + "/objects",
                "HYBRID_EMU_PAGE_COUNTS": "1"}

    def problems(self, run, index, result):
        if len(run.case.programs) > 1:
            if run.placement[index] == "p" and result.reads("dram") > STRAY * result.reads("pm"):
                return [f"{result.reads('dram')} lines were read from DRAM"]
            return []
        return [] if result.objects else ["bench-place.so listed no objects: it was not loaded"]


def all_contenders(setup, without=()):
    """In the order of the tables; `without` strategies of these names."""
    built = [s for s in STRATEGIES if s.option in setup.options and s.name not in without]
    alone = [Hybrid(s.name, s.label, (s,), setup) for s in STRATEGIES
             if s.name not in without]
    return [Everything("dram"), Everything("pm"), Linux(),
            Memtier("STATIC_RATIO", "ratio", setup),
            Memtier("DYNAMIC_THRESHOLD", "threshold", setup),
            Preloaded(setup), *alone, Hybrid("all", "all together", tuple(built), setup), Optimum(setup)]
