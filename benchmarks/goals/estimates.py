"""Estimates of the compiler beside measured steps, for a machine file measured here."""

import json
import os
import statistics

import workloads as w
from table import Line

MODELS = {
    "10-32-16-1, batch 1024": w.NOTEBOOK,
    "64-128-64-10 Adam, batch 256": w.DIGITS,
    "784-1024-1024-10, batch 128": w.IMAGES,
    "1024-4096-1024, batch 1024": w.WIDE,
    "96 layers of 64, batch 256": w.Mlp((64,) * 97, 256),
    "61-127-31-7, batch 251": w.Mlp((61, 127, 31, 7), 251),
}
LAYOUTS = [
    w.ONE,
    w.Layout("one device, 4 microbatches", microbatches=4),
    w.DP2,
    w.DP8,
    w.Layout("DP 8, 4 microbatches", "dp", "data=8", 4),
    w.Layout("FSDP 4", "fsdp", "data=4"),
    w.Layout("FSDP 8", "fsdp", "data=8"),
    w.Layout("HSDP 2x4", "hsdp", "replica=2,shard=4"),
    w.Layout("FSDP + TP 2x4", "fsdp+tp", "data=2,model=4"),
    w.Layout("TP 2", "tp", "model=2"),
    w.TP8,
]


def ranks(values):
    """Of each value its place in the order; equal ones share the mean of theirs."""
    order = sorted(values)
    return [statistics.mean(i for i, other in enumerate(order) if other == value) for value in values]


def spearman(left, right):
    """Spearman's coefficient of rank correlation."""
    return statistics.correlation(ranks(left), ranks(right))


def estimated(report):
    return report["time"]["overlapped_microseconds"] * 1e-6


def estimates(bench):
    machine = os.path.join(bench.compiler.folder, "machine.json")
    bench.compiler.measure_machine(machine)
    errors = []
    for name, mlp in MODELS.items():
        of_layout = {}
        for layout in LAYOUTS:
            report = bench.compiler.report(mlp, layout, machine)
            of_layout[layout.name] = estimated(report)
            bench.enter(layout.name, mlp, layout)
        result = bench.hold()
        measured = {key: result.seconds(key) for key in of_layout if result.seconds(key)}
        for key, seconds in measured.items():
            factor = max(seconds / of_layout[key], of_layout[key] / seconds)
            errors.append(factor)
            yield Line(f"{name}, {key}", "the estimate", seconds, of_layout[key], "s", factor, 2.0, False)
        if len(measured) > 1:
            value = spearman(list(measured.values()), [of_layout[key] for key in measured])
            yield Line(f"{name}, rank correlation", "", value, None, "", value, 0.9, True)
    yield Line("estimates, median factor", "", statistics.median(errors), None, "", statistics.median(errors), 1.15, False)
    yield Line("estimates, worst factor", "", max(errors), None, "", max(errors), 2.0, False)
