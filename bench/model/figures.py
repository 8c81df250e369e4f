# SPDX-License-Identifier: BSD-2-Clause
"""One picture for each table."""
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402: the backend comes first

PAPER, HERE, PM = "#b0b0b0", "#1f77b4", "#d62728"


def _bars(axes, rows):
    rows = [r for r in rows if r.here is not None][::-1]
    at = range(len(rows))
    axes.barh([y - 0.2 for y in at], [r.here for r in rows], 0.38, color=HERE, label="here")
    for y, r in zip(at, rows):
        if isinstance(r.paper, (int, float)):
            axes.barh(y + 0.2, r.paper, 0.38, color=PAPER, label="paper")
        axes.text(r.here, y - 0.2, f" {r.here:.3g}", va="center", fontsize=7)
    axes.set_yticks(list(at), [r.what for r in rows], fontsize=7)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(*zip(*{label: (h, label) for h, label in zip(handles, labels)}.values()),
                fontsize=8)
    axes.grid(axis="x", alpha=0.3)


def _writers(axes, rows):
    threads = [1, 2, 4, 8, 10]
    axes.plot(threads, [r.paper for r in rows[:5]], "s--", color=PAPER, label="paper")
    axes.plot(threads, [r.here for r in rows[:5]], "o-", color=HERE, label="here")
    axes.set(xlabel="random writers on PM", ylabel="% lost", ylim=(0, 100),
             title="DRAM sequential write, 10 threads")
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)


def _curves(figure, curves):
    names = sorted({c.rsplit(" ", 1)[0] for c in curves})
    grid = figure.subplots(2, (len(names) + 1) // 2, squeeze=False).flat
    for axes, name in zip(grid, names):
        for place, colour in (("dram", HERE), ("pm", PM)):
            speed = curves[f"{name} {place}"]
            axes.plot(range(1, len(speed) + 1), speed, ".-", color=colour, label=place.upper())
        axes.set(title=name, xlabel="threads", ylabel="speed-up")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    for axes in list(grid):
        axes.set_visible(False)


def draw(path, name, title, rows, curves):
    if curves:
        figure = plt.figure(figsize=(10, 6))
        _curves(figure, curves)
    elif name == "interference":
        figure, (left, right) = plt.subplots(1, 2, figsize=(11, max(4, 0.27 * len(rows))),
                                             width_ratios=(2, 3))
        _writers(left, rows)
        _bars(right, rows[5:])
        right.set_xlabel(rows[0].unit)
    else:
        figure, axes = plt.subplots(figsize=(8, max(3, 0.42 * len(rows))))
        _bars(axes, rows)
        if name == "slowdown":
            axes.axvline(1.5, color="black", linewidth=0.8, linestyle=":")
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
