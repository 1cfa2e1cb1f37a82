#!/usr/bin/env python3
"""Prints where the time of a plan's train steps goes, with Linux perf.

  benchmarks/profile_steps.py [--bin build/bin] [--steps N] [--cpu-target NAME] PLAN.shardc...

Prints the share of samples of all workers, in percent, by kind of work: kernels that
the compiler generated, GEMMs, reductions, copies and clears of memory, workers
that wait for others (on a busy computer also: for a core), page faults, the rest.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

# The first that fits; perf prints the object and then the symbol.
GROUPS = [
    ("waiting", r"barrier|WorkerPool::(work|run|takeFrom|takeAny)\b|sched_yield|schedule|futex|pick_next|finish_task_switch|yield"),
    ("kernels", r"memfd"),
    ("GEMMs", r"multiply(128|256|512)|store(128|256|512)|PackedGemm|packPanel|packTerms|copyPanel|transposePanel"),
    ("reductions", r"addF32|addBF16|reduce"),
    ("copies", r"mem(move|cpy|set)"),
    ("page faults", r"page|folio|fault|pmd"),
    ("rest", ""),
]


def profile(server, plan, steps):
    """`server` is a command."""
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "perf.data")
        requests = f"plan a {plan}\nrun a {steps}\n"
        done = subprocess.run(["perf", "record", "-q", "-F", "2000", "-o", data, *server], input=requests,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
        if done.returncode or "error" in done.stdout:
            sys.exit(f"{plan}: {done.stdout.strip()} {done.stderr.strip()}")
        report = subprocess.run(["perf", "report", "-i", data, "--sort", "dso,symbol", "-g", "none"],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout  # fmt: skip
    shares = dict.fromkeys((name for name, _ in GROUPS), 0.0)
    for line in report.splitlines():
        if found := re.match(r"\s+([\d.]+)%\s+(.*)", line):
            shares[next(name for name, pattern in GROUPS if re.search(pattern, found[2]))] += float(found[1])
    return shares


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--steps", type=int, default=1000, help="enough to make loading the plan negligible")
    parser.add_argument("--cpu-target", help="the kernels that run: x86-64-v3 or x86-64-v4")
    parser.add_argument("plans", nargs="+", metavar="PLAN")
    args = parser.parse_args()
    server = [os.path.join(args.bin, "shardc-bench-steps")] + ([f"--cpu-target={args.cpu_target}"] if args.cpu_target else [])
    print(f"{'plan':<24}" + "".join(f"{name:>12}" for name, _ in GROUPS))
    for plan in args.plans:
        shares = profile(server, plan, args.steps)
        print(f"{os.path.basename(plan):<24}" + "".join(f"{share:>11.0f}%" for share in shares.values()), flush=True)


if __name__ == "__main__":
    main()
