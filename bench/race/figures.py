# SPDX-License-Identifier: BSD-2-Clause
"""One picture for each experiment: bars for the contenders, grouped by case."""
import os

# Readable for the colour-blind and in grey; families share a hue.
COLOURS = {"all-dram": "#d9d9d9", "all-pm": "#969696", "linux": "#4d4d4d",
           "memtier-ratio": "#e69f00", "memtier-threshold": "#f0c75e",
           "hybrid-default": "#d55e00", "hybrid-class": "#a6cee3", "hybrid-profile": "#56a5d8",
           "hybrid-threads": "#3182bd", "hybrid-migrate": "#2166ac", "hybrid-company": "#14477a",
           "hybrid-all": "#009e73", "optimum": "#ffffff"}
# Taller bars are cut, with their value written in: they would flatten all others.
TALLEST = 3.0


def shown(case):
    """The contenders that have a ratio, in the order of the table."""
    return [n for n, row in case["contenders"].items() if row.get("over_linux")]


def draw_bar(axes, x, width, name, row):
    ratio = row["over_linux"]
    height = min(ratio["median"], TALLEST)
    axes.bar(x, height, width, color=COLOURS.get(name, "#cc79a7"), edgecolor="black",
             linewidth=0.6, hatch="////" if name == "optimum" else None, zorder=2)
    if ratio["median"] <= TALLEST:
        axes.errorbar(x, height, yerr=[[height - ratio["min"]], [ratio["max"] - height]],
                      color="black", capsize=2, linewidth=0.9, zorder=3)
    axes.annotate(f"{ratio['median']:.2f}", (x, min(max(ratio["max"], height), TALLEST)),
                  xytext=(0, 3), textcoords="offset points", ha="center", va="bottom",
                  fontsize=8, rotation=90)


def draw(plt, experiment, labels):
    cases = [c for c in experiment["cases"] if shown(c)]
    if not cases:
        return None
    names = [n for n in labels if any(n in shown(c) for c in cases)]
    figure, axes = plt.subplots(figsize=(max(6.4, 0.34 * len(names) * len(cases) + 1.5), 4.4))
    width = 0.86 / len(names)
    top = 1.0
    for number, case in enumerate(cases):
        for place, name in enumerate(names):
            if name in shown(case):
                row = case["contenders"][name]
                draw_bar(axes, number + (place - (len(names) - 1) / 2) * width, width, name, row)
                top = max(top, min(row["over_linux"]["max"], TALLEST))
    axes.axhline(1, color="black", linewidth=0.8, linestyle=":", zorder=1)
    axes.set_ylim(0, top * 1.16)
    axes.set_xlim(-0.5, len(cases) - 0.5)
    axes.set_xticks(range(len(cases)), [f"{c['name']}\n({c['dram_mib']} of {c['footprint_mib']}"
                                        " MiB DRAM)" for c in cases], fontsize=10)
    axes.set_ylabel("run time / Linux' (less is better)", fontsize=10)
    axes.set_title(f"{experiment['title']}\nemulated machine '{experiment['preset']}', "
                   "virtual time", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    handles = [plt.Rectangle((0, 0), 1, 1, facecolor=COLOURS.get(n, "#cc79a7"), edgecolor="black",
                             linewidth=0.6, hatch="////" if n == "optimum" else None)
               for n in names]
    figure.legend(handles, [labels[n] for n in names], loc="lower center", ncols=3, fontsize=9,
                  frameon=False)
    figure.tight_layout(rect=(0, 0.055 * ((len(names) + 2) // 3) + 0.01, 1, 1))
    return figure


def save(results, out):
    """PNG and SVG of every experiment; the names of the PNG files."""
    try:
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise RuntimeError(f"no pictures: {error} (package python3-matplotlib, and run by "
                           "/usr/bin/python3)") from None
    made = []
    for experiment in results["experiments"]:
        figure = draw(plt, experiment, results["labels"])
        if not figure:
            continue
        for kind in "svg", "png":
            path = os.path.join(out, f"{experiment['name']}.{kind}")
            figure.savefig(path, dpi=150)
        plt.close(figure)
        made.append(path)
    return made
