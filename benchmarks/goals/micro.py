"""Micro benchmarks and the limits of the computer: shardc-bench-micro, read."""

import json
import os
import statistics
import subprocess

from table import Line, duration, number

KIB = 1024


def run_benchmarks(program, *flags):
    """The counter of each benchmark in each repetition, by name."""
    # Threads of the streams that wait leave their core to the one they wait for.
    done = subprocess.run([program, "--benchmark_format=json", *flags], env={**os.environ, "OMP_WAIT_POLICY": "passive"},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{program}: exit code {done.returncode}\n{done.stderr}")
    figures = {}
    for run in json.loads(done.stdout)["benchmarks"]:
        if run.get("run_type") == "aggregate" or run.get("error_occurred"):
            continue
        for counter in ("seconds", "bytes", "flops"):
            if counter in run:
                figures.setdefault(run["run_name"].replace("/real_time", ""), []).append(run[counter])
    return figures


def measure_micro(program, update_plans, quick, best):
    """Medians over repetitions, or the best, which are taken in random order over
    all benchmarks, so that those that are compared see the same weather."""
    effort = (0.005, 3) if quick else (0.002, 20) if best else (0.03, 9)
    figures = run_benchmarks(program, *(f"--update-plan={plan}" for plan in update_plans), "--benchmark_enable_random_interleaving=true",
                             f"--benchmark_min_time={effort[0]}", f"--benchmark_repetitions={effort[1]}")  # fmt: skip
    if not best:
        return {name: statistics.median(values) for name, values in figures.items()}
    is_time = lambda name: name.startswith(("all_reduce", "overhead", "limit/core"))
    return {name: min(values) if is_time(name) else max(values) for name, values in figures.items()}


def measure_limits(program):
    """A limit is the best of many short runs."""
    return Limits(run_benchmarks(program, "--benchmark_filter=limit/(flops|triad|core)", "--benchmark_min_time=0.0005",
                                 "--benchmark_repetitions=100", "--benchmark_enable_random_interleaving=true"))  # fmt: skip


class Limits:
    """The limits of the computer."""

    def __init__(self, figures):
        self.flops = max(max(values) for name, values in figures.items() if name.startswith("limit/flops"))
        self.triad = max(figures[f"limit/triad/{384 << 20}"])
        self.latency = min(figures.get("limit/core_to_core", [0]))

    def text(self):
        return (f"limits: {self.flops / 1e9:.0f} GFLOP/s f32, triad {number(self.triad, 'B/s')} on all cores, "
                + (f"core to core {duration(self.latency)}" if self.latency else "one core"))  # fmt: skip

    def json(self):
        return {"flops_per_second": self.flops, "triad_bytes_per_second": self.triad, "core_to_core_seconds": self.latency}


def size(count):
    for unit, scale in ("MiB", KIB * KIB), ("KiB", KIB):
        if count >= scale:
            return f"{count // scale} {unit}"
    return f"{count} B"


def all_reduce_lines(figures):
    """Up to 64 KiB against blocking threads, above against streaming.

    With memory of its own for each device eight operands are read and eight results
    written; devices that share the result write one."""
    kinds = [("", "shardc", "limit/copy", 16), (", one result", "shared", "limit/sum", 9)]
    sizes = sorted(int(name.rsplit("/", 1)[1]) for name in figures if name.startswith("all_reduce/rendezvous/"))
    for suffix, kind, limit, streams in kinds:
        for count in sizes:
            ours, peer = figures[f"all_reduce/{kind}/{count}"], figures[f"all_reduce/rendezvous/{count}"]
            name = f"all-reduce, 8 devices, {size(count)}{suffix}"
            streaming = streams * count / figures[f"{limit}/{streams * count}"]
            if count <= 64 * KIB:
                yield Line(name, "blocking rendezvous", ours, peer, "s", peer / ours, 10, True,
                           f"{100 * streaming / ours:.0f} % of streaming")  # fmt: skip
            else:
                yield Line(name, "streaming", ours, streaming, "s", streaming / ours, 0.8, True,
                           f"{peer / ours:.3g}x a blocking rendezvous")  # fmt: skip


def overhead_lines(figures, limits):
    for name, value in figures.items():
        if name.startswith("overhead/"):
            _, devices, tasks = name.split("/")
            text = f"empty kernel, {devices} device{'s' if int(devices) > 1 else ''}, {tasks} task{'s' if int(tasks) > 1 else ''}"
            limit = f"{value / limits.latency:.2g} times core to core" if limits.latency else ""
            yield Line(text, "", value, None, "s", value, 100e-9, False, limit)


def update_lines(figures, updates):
    """`updates`: the plans of updates of 16 MiB of parameters, by name."""
    triad, streaming = figures[f"limit/triad/{64 << 20}"], figures[f"limit/update/{64 << 20}"]
    for name, plan in updates.items():
        ours = figures.get(f"update/{plan}")
        yield Line(f"AdamW, {name}", "triad", ours, triad, "B/s", ours and ours / triad, 0.85, True,
                   f"{100 * ours / streaming:.0f} % of streaming alike" if ours else "",
                   "" if ours else "the plan updates parameters elsewhere")  # fmt: skip
