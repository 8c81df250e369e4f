# SPDX-License-Identifier: BSD-2-Clause
"""From the records of runs to ratios, the table and results.json. Pure."""
import math

import benchlib as lib

BASE, WORST, BEST = "linux", "all-pm", "optimum"
UNLIMITED = "all-dram"  # has more DRAM than all others
# A smaller gain of the optimum over Linux is none to take a fraction of.
LEAST_GAIN = 0.02
# libhybrid against everything on PM: --check.
NEVER_WORSE = 1.02
# Digits of a placement that a line shows; results.json has all.
LONGEST = 30


def spread(values):
    """Median and extremes: with three repeats quartiles say nothing."""
    if not values:
        return None
    return {"median": lib.quantile(values, 0.5), "min": min(values), "max": max(values),
            "n": len(values)}


def paired(values, base):
    """Ratios within the same repeat; both are dicts by repeat."""
    return spread([values[r] / base[r] for r in sorted(values) if base.get(r)])


def best_placement(by_placement):
    """The placement with the least median among those that were repeated most often."""
    most = max(len(times) for times in by_placement.values())
    full = {p: times for p, times in by_placement.items() if len(times) == most}
    return min(full, key=lambda p: (lib.quantile(list(full[p].values()), 0.5), p))


def gain_fraction(ratio, best):
    """What share of the optimum's gain over Linux is reached: 1 all of it, below 0 worse
    than Linux; None where there is hardly anything to gain."""
    if ratio is None or best is None or 1 - best["median"] < LEAST_GAIN:
        return None
    return (1 - ratio["median"]) / (1 - best["median"])


def times_of(entries, what):
    return {repeat: record[what] for repeat, record in entries.items()}


def evaluate_case(names, records, failures, repeated):
    """records: {contender: {repeat: record}}; of the optimum those of its best placement.
    failures: {contender: why}; repeated: {contender: runs that were not valid}. A dict by
    contender, in the order of `names`, with all figures."""
    total = {name: times_of(entries, "total_ms") for name, entries in records.items()}
    whole = {name: times_of(entries, "whole_ms") for name, entries in records.items()}
    base, worst = total.get(BASE, {}), total.get(WORST, {})
    best = paired(total.get(BEST, {}), base)
    rows = {}
    for name in names:
        row = rows[name] = {"failed": failures.get(name), "not_valid": repeated.get(name, 0)}
        if not records.get(name):
            continue
        over_base, over_worst = paired(total[name], base), paired(total[name], worst)
        row.update({
            "total_ms": spread(list(total[name].values())),
            "mean_ms": spread(list(times_of(records[name], "mean_ms").values())),
            "whole_ms": spread(list(whole[name].values())),
            "over_linux": over_base, "over_all_pm": over_worst,
            "whole_over_linux": paired(whole[name], whole.get(BASE, {})),
            "speedup_over_linux": 1 / over_base["median"] if over_base else None,
            "speedup_over_all_pm": 1 / over_worst["median"] if over_worst else None,
            "gain_fraction": None if name == UNLIMITED else gain_fraction(over_base, best),
            "programs": programs_of(records[name])})
    return rows


def programs_of(entries):
    """Median time of each program from the gate to its end, and where it read, in one run."""
    records = list(entries.values())
    rows = []
    for i, program in enumerate(records[0]["programs"]):
        begin = [min(p["begin_ns"] for p in r["programs"]) for r in records]
        ends = [(r["programs"][i]["end_ns"] - b) / 1e6 for r, b in zip(records, begin)]
        rows.append({"ms": lib.quantile(ends, 0.5), "reads": program["reads"],
                     "writebacks": program["writebacks"]})
    return rows


def on_dram(row):
    """The share of memory traffic that DRAM took."""
    traffic = {t: sum(p["reads"][t] + p["writebacks"][t] for p in row["programs"])
               for t in ("dram", "pm")}
    return traffic["dram"] / max(sum(traffic.values()), 1)


# --- text --------------------------------------------------------------------------

def number(value, form):
    return "-" if value is None or not math.isfinite(value) else format(value, form)


def percent(value):
    return "-" if value is None else f"{100 * value:.0f}%"


def gain_text(value):
    """Far below Linux a percentage of the optimum's gain tells nothing."""
    if value is not None and value < -0.005:
        return "loss"
    return percent(None if value is None else max(value, 0.0))


HEAD = ["contender", "ms", "/ Linux", "lowest", "highest", "x PM", "gain", "DRAM", "whole ms",
        "/ Linux"]


def table_row(label, row):
    if not row.get("total_ms"):
        return [label, *["-"] * (len(HEAD) - 1)]
    ratio, whole = row["over_linux"] or {}, row["whole_over_linux"] or {}
    return [label, number(row["total_ms"]["median"], ".2f"), number(ratio.get("median"), ".3f"),
            number(ratio.get("min"), ".3f"), number(ratio.get("max"), ".3f"),
            number(row["speedup_over_all_pm"], ".2f"), gain_text(row["gain_fraction"]),
            percent(on_dram(row)), number(row["whole_ms"]["median"], ".2f"),
            number(whole.get("median"), ".3f")]


def short(placement):
    return placement if len(placement) <= LONGEST else placement[:LONGEST] + "..."


def case_text(experiment, case, rows, labels):
    """The table of one case, with what failed and what was repeated below."""
    programs = ", ".join(p["workload"] + (f" ({p['stands_for']})" if p["stands_for"] else "")
                         for p in case["programs"])
    lines = [f"{experiment} / {case['name']}: {programs}",
             f"{case['programs'][0]['threads']} threads each, {case['footprint_mib']} MiB of data, "
             f"{case['dram_mib']} MiB of DRAM" + (f"; {case['note']}" if case["note"] else ""), "",
             lib.table(HEAD, [table_row(labels[n], rows[n]) for n in rows])]
    for name, row in rows.items():
        if row["failed"]:
            lines.append(f"FAILED: {labels[name]}: {row['failed']}")
    again = sum(row["not_valid"] for row in rows.values())
    if again:
        lines.append(f"{again} runs were not valid and were repeated")
    if case.get("placement"):
        among = "" if case["placements_tried"] >= case["placements"] else \
            f" (the most promising of {case['placements']})"
        lines.append(f"best of {case['placements_tried']} static placements{among}: "
                     + short(case["placement"]))
    return "\n".join(lines)


LEGEND = """\
ms: virtual time from the common start to the end of the last program, median.
/ Linux: that over Linux' in the same round (first touch: DRAM first, then PM); lowest and highest
of all rounds beside it. x PM: how many times faster than all on PM. gain: share of what the best
static placement gains over Linux (loss: slower than Linux). DRAM: share of memory traffic (lines
read and written) that DRAM took. whole ms: of the program that takes longest, from its own start
to its end, making and verifying its data included, and that over Linux'."""


def text(results):
    parts = []
    labels = results["labels"]
    for experiment in results["experiments"]:
        parts.append(f"== {experiment['title']} (machine: {experiment['preset']}) ==\n"
                     f"all together: {', '.join(experiment['together'])}")
        for case in experiment["cases"]:
            parts.append(case_text(experiment["name"], case, case["contenders"], labels))
    parts.append(LEGEND)
    for item in results["left_out"]:
        parts.append(f"left out: {item['label']}: {item['why']}")
    return "\n\n".join(parts) + "\n"


def all_rows(results):
    """(where, contender, row) of everything."""
    for experiment in results["experiments"]:
        for case in experiment["cases"]:
            for name, row in case["contenders"].items():
                yield f"{experiment['name']} / {case['name']}: {results['labels'][name]}", name, row


def failed(results):
    return [f"{where}: {row['failed']}" for where, _, row in all_rows(results) if row["failed"]]


def check(results):
    """What must hold, as lines that say what does not."""
    failures = failed(results)
    for where, name, row in all_rows(results):
        over = row.get("over_all_pm")
        if name.startswith("hybrid-") and over and over["median"] > NEVER_WORSE:
            failures.append(f"{where} takes {over['median']:.3f} times as long as "
                            f"everything on PM (limit {NEVER_WORSE})")
    return failures
