#!/usr/bin/env python3
"""Plots section `growth` of the benchmarks: time per useful FLOP of growing models.

  benchmarks/run.sh --only growth --json growth.json
  benchmarks/plot_growth.py growth.json docs/growth.png

Needs matplotlib, as Debian's python3-matplotlib or build/jax-venv have it.
"""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

GOAL = 1.15


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: plot_growth.py RESULTS.json PICTURE")
    with open(sys.argv[1]) as file:
        results = json.load(file)
    series = {}
    for line in results["lines"]:
        if line["series"] and line["ratio"]:
            series.setdefault(line["series"], [(1, 1)]).append((line["factor"], line["ratio"]))
    if not series:
        sys.exit(f"{sys.argv[1]}: no lines of section growth")
    figure, axes = plt.subplots(figsize=(8, 4.5))
    for marker, (name, points) in zip("osD^vPX", series.items()):
        axes.plot(*zip(*points), marker=marker, label=name)
    axes.axhline(GOAL, color="black", linestyle="--", linewidth=1)
    axes.text(1, GOAL + 0.01, "goal")
    axes.set_xscale("log", base=2)
    axes.set_xticks([2**n for n in range(7)], [str(2**n) for n in range(7)])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("times as many")
    axes.set_ylabel("time per useful FLOP, of that of the fewest")
    axes.set_title(results["machine"], fontsize="small")
    axes.legend(fontsize="small", loc="lower left")
    figure.tight_layout()
    figure.savefig(sys.argv[2], dpi=100)


if __name__ == "__main__":
    main()
