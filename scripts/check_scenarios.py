#!/usr/bin/env python3
"""Checks the programs in test/Pipelines/scenarios beyond their bytes, which lit
compares. In both modes of --partition, by bytes, each must hold:

  i    N devices compute what one does: every value in the reference interpreter,
       losses and parameters in a run, and these bit for bit where all is exact
  ii   no GEMM is computed twice: each matmul is cut into as many parts as there
       are devices, and the report counts the FLOPs of one part
  iii  new parameters, new states and results rest as annotated
  iv   the run sends as many bytes as the report says

  check_scenarios.py [--full] [--jobs=J] [FILE...]

Reports, ii and iii are of the program as it is written. One with a batch of 256 rows
or more runs with all sizes from 256 on divided by 32. That keeps what divides what
and the proportions between tensors; the list of collectives must be the same. Where
a step is quick its bytes are also counted as it is written, with --full always.
Programs are found on PATH. Python's standard library alone.
"""

import argparse
import concurrent.futures
import glob
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile

from check_random import write_npz
from read_functions import dimensions, parse_functions

SCENARIOS = os.path.join(os.path.dirname(__file__), "..", "test", "Pipelines", "scenarios", "*.mlir")
# Sizes from LARGE on are divided by SHRINK, in programs with such a batch.
LARGE, SHRINK = 256, 32
# A step of so many FLOPs takes about a second on two cores.
QUICK_FLOPS = 50e9


class Failed(Exception):
    """A condition does not hold: its number and what was found."""

    def __init__(self, condition, message):
        super().__init__(f"({condition}) {message}")


def expect(condition, what, actual, expected):
    if actual != expected:
        raise Failed(condition, f"{what}: expected {expected}, got {actual}")


def execute(condition, *command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    if done.returncode:
        raise Failed(condition, f"{' '.join(command)}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def ceil_div(size, parts):
    return -(-size // parts)


# --- The conditions -----------------------------------------------------------


def check_gemms(whole, part, num_devices):
    """ii, but for what the report says."""
    expect("ii", f"@{part.name}, GEMMs", len(part.gemms), len(whole.gemms))
    for number, (globally, locally) in enumerate(zip(whole.gemms, part.gemms)):
        sizes = zip(globally[0] + globally[1], locally[0] + locally[1])
        parts = math.prod(ceil_div(size, local) for size, local in sizes)
        expect("ii", f"@{part.name}, parts of GEMM {number}", parts, num_devices)


def check_results(part, wanted, global_sizes, axes):
    """iii: each result lies as `wanted` says, by name or place."""
    for place, (name, local, shardings, _) in enumerate(part.results):
        label = name or place
        if label not in wanted:
            raise Failed("iii", f"@{part.name} has a result {label} that is none of {list(wanted)}")
        expect("iii", f"@{part.name}, sharding of {label}", shardings.get("sharding"), wanted[label])
        sizes = zip(global_sizes[label], wanted[label])
        expect("iii", f"@{part.name}, local shape of {label}", local,
               [ceil_div(size, math.prod(axes[axis] for axis in by)) for size, by in sizes])  # fmt: skip


def wanted_of_step(source, part):
    """Name -> sharding and name -> sizes of the results of a train step. What is not
    annotated is stored where the old value does."""
    wanted, sizes = {"loss": []}, {"loss": []}
    annotated = {name: shardings for name, _, shardings, _ in source.arguments}
    full = {name: size for name, size, _, _ in source.arguments}
    for name, _, shardings, attributes in part.arguments:
        state_of = re.search(r'of = "(\w+)"', attributes)
        owner, key = (state_of.group(1), "state_sharding") if state_of else (name, "sharding")
        if re.search(r"#shardc\.(parameter|state)<", attributes):
            wanted[name] = annotated.get(owner, {}).get(key, shardings["sharding"])
            sizes[name] = full.get(owner, [])
    expect("iii", "results of the step", [name for name, *_ in part.results], list(wanted)[1:] + ["loss"])
    return wanted, sizes


# --- Running ------------------------------------------------------------------


def shrink(text):
    def smaller(match):
        return re.sub(r"\d+(?=x)", lambda size: str(int(size[0]) // (SHRINK if int(size[0]) >= LARGE else 1)), match[0])

    rows = int(re.search(r"%y: tensor<(\d+)x", text)[1])
    return re.sub(r"tensor<[^>]*>", smaller, text) if rows >= LARGE else text


def is_exact(text):
    """Whether integers stay exact: linear ops and relu, a mean over 2^n elements."""
    loss = re.search(r"shardc\.mse .*: tensor<(\S*?)>", text)
    elements = math.prod(dimensions(loss.group(1))) if loss else 3
    plain = not re.search(r"gelu|clip_norm|<adam", text)
    return plain and elements & (elements - 1) == 0


def write_arrays(arguments, path, roles, rng, constant=False):
    arrays = {}
    for name, sizes, _, attributes in arguments:
        if not re.search(f"#shardc\\.({roles})<", attributes):
            continue
        number = math.prod(sizes)
        # One-dimensional labels are classes; parameters and values are in {-1, 0, 1}.
        kind, low, high = ("<i4", 0, 7) if "label<" in attributes and len(sizes) == 1 else ("<f4", -1, 1)
        arrays[name] = (kind, tuple(sizes), [0] * number if constant else [rng.randint(low, high) for _ in range(number)])
    write_npz(path, arrays)


class Case:
    """One file in one mode."""

    def __init__(self, path, mode, full):
        self.path, self.mode, self.full = path, mode, full
        with open(path) as file:
            self.text = file.read()
        mesh = re.search(r"shardc\.mesh @mesh <\[(.*)\]>", self.text)[1]
        self.axes = {name: int(size) for name, size in re.findall(r'"(\w+)" = (\d+)', mesh)}
        self.num_devices = math.prod(self.axes.values())

    def compile(self, path, folder, *flags):
        """The report, and the functions per phase."""
        dump = os.path.join(folder, "dump")
        done = execute("i", "shardc-compile", path, "--json", f"--partition={self.mode}", "--objective=bytes",
                       "--target=cpu:x86-64-v3", f"--shardc-dump-dir={dump}", *flags)  # fmt: skip
        if flags and "partition verified" not in done.stderr:
            raise Failed("i", "the partition was not verified")
        phases = {}
        for phase in ("differentiate", "partition"):
            with open(glob.glob(os.path.join(dump, f"*-{phase}.mlir"))[0]) as file:
                phases[phase] = parse_functions(file.read())
        return json.loads(done.stdout), phases

    def run(self, text, folder, report, exact):
        """i by a run, and iv; returns how it agrees."""
        path, data, parameters = (os.path.join(folder, name) for name in ("run.mlir", "data.npz", "parameters.npz"))
        with open(path, "w") as file:
            file.write(text)
        rng = random.Random(1)
        arguments = parse_functions(text)["loss"].arguments
        write_arrays(arguments, data, "input|label", rng)
        write_arrays(arguments, parameters, "parameter", rng)
        done = execute("i", "shardc-run", path, f"--partition={self.mode}", "--objective=bytes", f"--data={data}", f"--load-params={parameters}",
                       "--steps=1", "--check-reference", "--json")  # fmt: skip
        summary = json.loads(done.stdout)
        agreement = summary["reference"]["verdict"]
        if agreement != "bit-equal" and (exact or agreement != "agrees"):
            raise Failed("i", f"the run {agreement}, expected bit-equal\n{done.stderr}" if exact else done.stderr)
        expect("iv", "bytes counted", summary["wire_bytes_per_step"], report["wire_bytes_per_device"])
        return agreement

    def run_as_written(self, source, folder, report):
        """iv on the sizes of the file; what is computed does not matter."""
        data = os.path.join(folder, "full.npz")
        write_arrays(source.arguments, data, "input|label", None, constant=True)
        done = execute("iv", "shardc-run", self.path, f"--partition={self.mode}", "--objective=bytes", f"--data={data}", "--steps=1", "--json")
        counted = json.loads(done.stdout)["wire_bytes_per_step"]
        expect("iv", "bytes counted at full size", counted, report["wire_bytes_per_device"])

    def check_step(self, folder):
        source = parse_functions(self.text)["loss"]
        small = shrink(self.text)
        is_small = small == self.text
        report, phases = self.compile(self.path, folder)
        whole, part = phases["differentiate"]["train_step"], phases["partition"]["train_step"]
        check_gemms(whole, part, self.num_devices)
        expect("ii", "FLOPs per device reported", report["matmul_flops_per_device"], part.flops())
        expect("ii", "global FLOPs reported", report["global_matmul_flops"], whole.flops())
        check_results(part, *wanted_of_step(source, part), self.axes)
        lines = sum(line["wire_bytes"] for line in report["collectives"])
        expect("iv", "bytes of all lines reported", lines, report["wire_bytes_per_device"])

        # A power of two, so that updates are exact as well.
        text = small.replace("learning_rate = 0.01", "learning_rate = 0.125")
        agreements = []
        for variant in [text] + ([re.sub("<adam, ", "<momentum, momentum = 0.5, ", text)] if "<adam" in text else []):
            path = os.path.join(folder, "small.mlir")
            with open(path, "w") as file:
                file.write(variant)
            small_report, _ = self.compile(path, os.path.join(folder, str(len(agreements))), "--verify-partition")
            plans = [[(it["kind"], it["axes"], it["part"]) for it in one["collectives"]] for one in (small_report, report)]
            # Of equally cheap plans the search may choose another one at other sizes.
            if self.mode == "follow":
                expect("i", "collectives of what runs", plans[0], plans[1])
            agreements.append(self.run(variant, folder, small_report, is_exact(variant)))
        sizes = "1/32" if not is_small else "as written"
        if not is_small and (self.full or report["global_matmul_flops"] < QUICK_FLOPS):
            self.run_as_written(source, folder, report)
            sizes += ", bytes as written"
        flops = f"{report['matmul_flops_per_device']} of {report['global_matmul_flops']} FLOPs"
        return f"{' and '.join(agreements):23} {report['wire_bytes_per_device']:>9} B, {flops}, run {sizes}"

    def check_functions(self, folder):
        """Programs without a step: nothing is run, so iv is left out."""
        done = execute("i", "shardc-opt", self.path, "--compile-from=differentiate", "--compile-to=partition",
                       f"--partition={self.mode}", "--objective=bytes", "--verify-partition")  # fmt: skip
        if "partition verified" not in done.stderr:
            raise Failed("i", "the partition was not verified")
        parts = parse_functions(done.stdout)
        for name, source in parse_functions(self.text).items():
            check_gemms(source, parts[name], self.num_devices)
            results = list(enumerate(source.results))
            # An open result is as computed; the verification has compared it.
            wanted = {i: it[2].get("sharding", parts[name].results[i][2]["sharding"]) for i, it in results}
            check_results(parts[name], wanted, {i: it[1] for i, it in results}, self.axes)
        return f"verified                {len(parts)} functions; (iv) is of steps"

    def check(self):
        """What was found, or what failed."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                return True, self.check_step(folder) if "shardc.training" in self.text else self.check_functions(folder)
            except Failed as failure:
                return False, str(failure)


def is_program(path):
    """Not those whose errors are tested, nor those already written per device."""
    with open(path) as file:
        text = file.read()
    code = re.sub(r"^ *//.*", "", text, flags=re.M)
    return "--verify-diagnostics" not in text and "shardc.all_reduce" not in code


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="count the bytes of every program as it is written")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("files", nargs="*", metavar="FILE")
    arguments = parser.parse_args()
    everything = sorted(arguments.files or glob.glob(SCENARIOS))
    paths = list(filter(is_program, everything))
    cases = [Case(path, mode, arguments.full) for path in paths for mode in ("follow", "cheapest")]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for case, (holds, message) in zip(cases, pool.map(Case.check, cases)):
            failed += not holds
            name = os.path.basename(case.path)[: -len(".mlir")]
            print(f"{'ok    ' if holds else 'FAILED'} {name:46} {case.mode:8} {message}", flush=True)
    for path in sorted(set(everything) - set(paths)):
        print(f"none   {os.path.basename(path)[: -len('.mlir')]:46} an error is tested, or no global program")
    print(f"{len(cases) - failed} of {len(cases)} scenarios hold")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
