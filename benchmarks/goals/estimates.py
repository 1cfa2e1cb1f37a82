"""Estimates of the compiler beside measured steps, for a machine file measured here."""

import itertools
import json
import os
import re
import statistics
from concurrent.futures import ThreadPoolExecutor

import workloads as w
from contest import Failure
from table import Line

MODELS = {
    "10-32-16-1, batch 1024": w.NOTEBOOK,
    "64-128-64-10 Adam, batch 256": w.DIGITS,
    "784-1024-1024-10, batch 128": w.IMAGES,
    "1024-4096-1024, batch 1024": w.WIDE,
    "96 layers of 64, batch 256": w.Mlp((64,) * 97, 256),
    "61-127-31-7, batch 251": w.Mlp((61, 127, 31, 7), 251),
}
# Of one strategy on 1, 2, 4 and 8 devices.
MESHES = {
    "none": ("data=1", "data=2", "data=4", "data=8"),
    "dp": ("data=1", "data=2", "data=4", "data=8"),
    "fsdp": ("data=1", "data=2", "data=4", "data=8"),
    "tp": ("model=1", "model=2", "model=4", "model=8"),
    "fsdp+tp": ("data=1,model=1", "data=2,model=1", "data=2,model=2", "data=2,model=4"),
    "hsdp": ("replica=1,shard=1", "replica=1,shard=2", "replica=2,shard=2", "replica=2,shard=4"),
}
MICROBATCHES = (1, 4)
# Of the measurements of a model, which has fewer rounds if its steps are long.
SECONDS = 50
# Two machine files that differ more are of two states of the computer.
SAME_SECONDS, SAME_FLOPS = 1.5, 1.1
# Steps whose times differ by less may change places from one run to the next.
DISTINCT = 1.03


def chosen_models(bench):
    """Those that --models names."""
    return {name: mlp for name, mlp in MODELS.items() if bench.models in name}


def layouts():
    for (strategy, meshes), microbatches in itertools.product(MESHES.items(), MICROBATCHES):
        for mesh in meshes:
            name = f"{strategy} {mesh}" + (f", {microbatches} microbatches" if microbatches > 1 else "")
            yield w.Layout(name, strategy, mesh, microbatches)


def program(text, mesh):
    """The commands of a compiled module, whatever its axes are called; those of one device are left out."""
    aliases = dict(re.findall(r"^(#\w+) = (.*)$", text, re.MULTILINE))
    text = re.sub(r"^(#\w+ = .*|\s*shardc\.mesh .*)\n", "", text, flags=re.MULTILINE)
    text = re.sub(r'shardc\.cause = "[^"]*"', "", text)
    text = re.sub(r"#\w+", lambda alias: aliases.get(alias[0], alias[0]), text)
    for number, axis in enumerate(name for name, size in mesh.items() if size > 1):
        text = text.replace(f'"{axis}"', f'"axis{number}"')
    for axis in (name for name, size in mesh.items() if size == 1):
        text = re.sub(f'"{axis}", |(, )?"{axis}"', "", text)
    return text


def by_layout(chosen, failures, ask):
    """What `ask` says of each of the layouts `chosen`, but for those for which it fails: their errors are in `failures`."""
    answers = {}
    for layout in chosen:
        try:
            answers[layout] = ask(layout)
        except Failure as failure:
            failures[layout] = str(failure)
    return answers


def distinct_layouts(bench, mlp, failures):
    """The first of those layouts that compile to the same commands."""
    models = by_layout(layouts(), failures, lambda layout: bench.compiler.model(mlp, layout))
    found = {}
    with ThreadPoolExecutor(2) as pool:
        texts = {layout: pool.submit(bench.compiler.run, "shardc-opt", model, "--compile-to=memory") for layout, model in models.items()}
        for layout, text in by_layout(texts, failures, lambda layout: texts[layout].result()).items():
            found.setdefault(program(text, layout.axes()), layout)
    return list(found.values())


def ranks(values):
    """Of each value its place in the order; equal ones share the mean of theirs."""
    order = sorted(values)
    return [statistics.mean(i for i, other in enumerate(order) if other == value) for value in values]


def spearman(left, right):
    """Spearman's coefficient of rank correlation."""
    return statistics.correlation(ranks(left), ranks(right))


def kendall(measured, estimates):
    """Kendall's tau of the pairs whose measured values differ by more than `DISTINCT`; None without any."""
    signs = []
    for (a, x), (b, y) in itertools.combinations(zip(measured, estimates), 2):
        if max(a, b) > DISTINCT * min(a, b):
            signs.append(((a > b) - (a < b)) * ((x > y) - (x < y)))
    return statistics.mean(signs) if signs else None


class MeasuredMachine:
    """A machine file that is measured again and again: the computer has states for minutes."""

    def __init__(self, bench):
        self.bench, self.file = bench, os.path.join(bench.compiler.folder, "machine.json")
        self.measure()

    def measure(self):
        self.bench.compiler.measure_machine(self.file)
        with open(self.file) as file:
            machine = json.load(file)
        self.command_seconds = machine["computer"]["command_seconds"]
        self.flops = machine["device"]["flops_per_second"]["f32"]
        # In the caches of the cores; a computer of one worker has none.
        exchange = machine["computer"].get("exchange_bytes_per_second")
        self.exchange = exchange[min(exchange, key=int)] if exchange else 1

    def change(self):
        """What has changed since it was measured last, in words, and measures it anew."""
        seconds, flops, exchange = self.command_seconds, self.flops, self.exchange
        self.measure()
        changes = []
        if max(seconds, self.command_seconds) > SAME_SECONDS * min(seconds, self.command_seconds):
            changes.append(f"commands took {seconds * 1e6:.2f} µs before and {self.command_seconds * 1e6:.2f} after")
        if max(exchange, self.exchange) > SAME_SECONDS * min(exchange, self.exchange):
            changes.append(f"workers exchanged {exchange / 1e9:.1f} GB/s before and {self.exchange / 1e9:.1f} after")
        if max(flops, self.flops) > SAME_FLOPS * min(flops, self.flops):
            changes.append(f"{flops / 1e9:.0f} GFLOP/s before and {self.flops / 1e9:.0f} after")
        return ", ".join(changes)


def measure(bench, mlp, chosen, failures):
    """The seconds of a step of each of the layouts, measured in turns, and the rank
    correlation of two measurements, each of every second round; None of one round."""
    for layout in chosen:
        bench.enter(layout.name, mlp, layout)
    result = bench.hold(SECONDS)

    def seconds(layout):
        if error := result.error(layout.name):
            raise Failure(error)
        return result.seconds(layout.name)

    measured = by_layout(chosen, failures, seconds)
    return measured, repeatability(result, [layout.name for layout in measured])


def repeatability(result, names):
    """Spearman's coefficient of one half of the rounds of a contest with the other."""
    halves = [result.halves(name) for name in names]
    return spearman(*zip(*halves)) if len(halves) > 1 and all(halves) else None


def guess(bench, mlp, chosen, machine, failures):
    """The seconds that the compiler estimates."""

    def seconds(layout):
        return bench.compiler.report(mlp, layout, machine.file)["time"]["overlapped_microseconds"] * 1e-6

    return by_layout(chosen, failures, seconds)


def estimates(bench):
    machine = MeasuredMachine(bench)
    errors = []
    for name, mlp in chosen_models(bench).items():
        failures = {}
        chosen = distinct_layouts(bench, mlp, failures)
        guessed = guess(bench, mlp, chosen, machine, failures)
        measured, repeated = measure(bench, mlp, guessed, failures)
        state = machine.change()
        if state:
            state += ": both measured anew"
            machine.measure()
            guessed = guess(bench, mlp, measured, machine, failures)
            measured, repeated = measure(bench, mlp, guessed, failures)
        for layout, error in failures.items():
            yield Line(f"{name}, {layout.name}", "the estimate", None, None, "s", None, 2.0, False, error=error)
        if len(measured) < 2:
            continue
        plans = list(measured)
        guessed, measured = [guessed[layout] for layout in plans], [measured[layout] for layout in plans]
        factors = [max(a / b, b / a) for a, b in zip(measured, guessed)]
        errors += factors
        for layout, seconds, expected, factor in zip(plans, measured, guessed, factors):
            yield Line(f"{name}, {layout.name}", "the estimate", seconds, expected, "s", factor, 2.0, False)

        def summary(what, value, goal, at_least, limit=""):
            return Line(f"{name}, {what}", "", value, None, "", value, goal, at_least, limit)

        same = len(list(layouts())) - len(chosen) - len(failures)
        yield summary("median factor", statistics.median(factors), 1.15, False,
                      f"{len(plans)} plans; {same} more compile to the same commands as one of these")  # fmt: skip
        yield summary("worst factor", max(factors), 2.0, False, state)
        tau = kendall(measured, guessed)
        notes = [] if tau is None else [f"Kendall's tau of pairs that differ by more than 3 %: {tau:.2f}"]
        notes += [] if repeated is None else [f"one half of the rounds with the other: {repeated:.2f}"]
        yield summary("rank correlation", spearman(measured, guessed), 0.9, True, ", ".join(notes))
    yield Line("estimates, median factor", "", statistics.median(errors), None, "", statistics.median(errors), 1.15, False,
               f"{len(errors)} pairs")  # fmt: skip
    yield Line("estimates, worst factor", "", max(errors), None, "", max(errors), 2.0, False)
