"""Measures shardc on CPUs against its peers and its goals; see run.sh.

Each section holds contests (contest.py) and gives lines of the table: what is
measured, the peer's figure, ours, their ratio, the goal, and how far from the
limits of the computer, which are measured in the same run.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile

from bench import SOURCE, Bench
from sections import OF_KERNELS, SECTIONS
from table import HEADINGS, row


def describe_machine():
    model = platform.processor()
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":")[1].strip()
                break
    return f"{model}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(SOURCE, "build", "bin"), help="where shardc's programs are")
    parser.add_argument("--jax", default=sys.executable, metavar="PYTHON", help="a Python that may have JAX")
    parser.add_argument("--checkpoint-peers", metavar="PYTHON", help="a Python that may have Orbax and torch")
    parser.add_argument("--json", metavar="FILE", help="writes the figures there")
    parser.add_argument("--quick", action="store_true", help="only shows that all of it runs: figures mean little")
    parser.add_argument("--rounds", type=int, default=7, help="of each contest")
    parser.add_argument("--best", action="store_true", help="compares the best of many short rounds: for a busy computer")
    parser.add_argument("--only", default="", metavar="SECTIONS", help=f"some of {','.join(SECTIONS)}")
    parser.add_argument("--cpu-target", choices=("x86-64-v3", "x86-64-v4"), help="the kernels that run, in sections of steps; peers are held to AVX2, too, if it is the former")
    parser.add_argument("--models", default="", metavar="TEXT", help="of the sections busy, estimates and advice, only models whose names contain it")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    known = OF_KERNELS if arguments.cpu_target else SECTIONS
    chosen = arguments.only.split(",") if arguments.only else list(known)
    if unknown := set(chosen) - set(SECTIONS):
        sys.exit(f"unknown section {unknown.pop()}; expected some of {','.join(SECTIONS)}")
    if other := set(chosen) - set(known):
        sys.exit(f"--cpu-target is not for section {other.pop()}; expected some of {','.join(known)}")
    try:
        probe = subprocess.run([arguments.jax, "-c", "import jax; print(jax.__version__)"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)  # fmt: skip
    except OSError as error:
        sys.exit(f"--jax: {error}; expected a Python")
    version = probe.stdout.strip() if probe.returncode == 0 else None
    if not version:
        arguments.jax = None
    machine = describe_machine()
    print(f"{machine}; " + (f"JAX {version}" if version else "no JAX: lines that need it have no peer (--with-jax installs it)"))
    if arguments.cpu_target:
        print(f"kernels and peers for {arguments.cpu_target}")
    if arguments.best:
        print("the best of many short rounds, not medians")
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, folder)
        print(bench.limits.text() + "\n\n" + row(HEADINGS), flush=True)
        for section in chosen:
            for line in SECTIONS[section](bench):
                lines.append(line)
                print(row(line.cells()), flush=True)
    missed = sum(line.met is False for line in lines)
    without = sum(line.met is None for line in lines)
    print(f"\n{len(lines)} lines: {len(lines) - missed - without} met, {missed} missed, {without} without a peer")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"machine": machine, "jax": version, "best": arguments.best, "cpu_target": arguments.cpu_target, "limits": bench.limits.json(),
                       "lines": [line.json() for line in lines]}, file, indent=1)  # fmt: skip


if __name__ == "__main__":
    main()
