#!/usr/bin/env python3
"""Ablation of the search for the cheapest plan.

    benchmarks/ablation.py [--build=BUILD] [--limit=SECONDS] [--repeat=N]
                           [--models=MODEL,...] [--variants=VARIANT,...]

Searches for the cheapest plans of some models with the whole search, and with one
part of it switched off at a time (SearchOptions.h). Prints a Markdown table with a
column per model. Its first row has the processor time of the whole search and the
gap between its plan and its lower bound. The other rows have the time as a ratio to
the first row, and the cost and the gap where they differ. Times are the least of N
runs; a run ends at the limit of processor time. Needs the program ablate-search:
ninja -C BUILD ablate-search.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
WHOLE = "all parts"

SMALL = ["--layers=10,32,16,1", "--batch-size=1024"]
LAYERS_4 = ["--layers=" + ",".join(["1024"] * 5), "--optimizer=adamw", "--batch-size=8192"]
LAYERS_8 = ["--layers=" + ",".join(["512"] * 9), "--batch-size=512"]
LAYERS_24 = ["--layers=" + ",".join(["512", "768"] * 12 + ["10"]), "--batch-size=4096"]
LAYERS_96 = ["--layers=" + ",".join(["4096"] * 97), "--optimizer=adamw", "--batch-size=8192"]
TWO_AXES = ["--strategy=fsdp+tp", "--mesh=data=4,model=2"]
THREE_AXES = ["--strategy=hsdp+tp", "--mesh=replica=2,shard=2,model=2"]
FREE_AXIS = ["--strategy=fsdp+tp", "--mesh=data=2,model=2,free=2"]
NOTHING = ["--strategy=none", "--mesh=data=4,model=2"]
BYTES = ["--objective=bytes"]
LIMITED = os.path.join(HERE, "..", "test", "Pipelines", "scenarios", "17-sharded-classes.mlir")
# name: flags of shardc-gen or a file, flags of ablate-search
MODELS = {
    "10-32-16-1 on 4x2": (SMALL + TWO_AXES, []),
    "10-32-16-1 on 2x2x2": (SMALL + THREE_AXES, []),
    "10-32-16-1 without annotations on 4x2": (SMALL + NOTHING, []),
    "4 layers of 1024 on 2x2x2": (LAYERS_4 + THREE_AXES, []),
    "the same by bytes": (LAYERS_4 + THREE_AXES, BYTES),
    "8 layers of 512 with a free axis": (LAYERS_8 + FREE_AXIS, []),
    "24 alternating layers on 4x2": (LAYERS_24 + TWO_AXES, []),
    "96 layers of 4096 on 4x2": (LAYERS_96 + TWO_AXES, []),
    "96 layers of 4096 on 2x2x2": (LAYERS_96 + THREE_AXES, []),
    "96 of these by bytes": (LAYERS_96 + THREE_AXES, BYTES),
    "17-sharded-classes in 100000 bytes": (LIMITED, BYTES + ["--device-memory=100000"]),
}


def cell(line, whole):
    """The entry of a search, `line`, beside that of the whole search."""
    if "cost" not in line:
        return f"{line['seconds'] / whole['seconds']:.1f}, none"

    def gap(found):
        return 100 * (1 - found["at_least"] / found["cost"]) if found["cost"] else 0

    if line is whole:
        return f"{line['seconds']:.2f} s, gap {gap(line):.2g} %"
    text = f"{line['seconds'] / whole['seconds']:.1f}"
    if abs(line["cost"] / whole["cost"] - 1) > 5e-5:
        text += f", cost {line['cost'] / whole['cost']:.4f}"
    if abs(gap(line) - gap(whole)) > 5e-3:
        text += f", gap {gap(line):.2g} %"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--models", default="")
    parser.add_argument("--variants", default="")
    arguments = parser.parse_args()
    tools = os.path.join(arguments.build, "bin")

    def run(program, *flags, prepare=None):
        return subprocess.run([os.path.join(tools, program), *flags], capture_output=True,
                              text=True, check=True, preexec_fn=prepare).stdout  # fmt: skip

    def limit_time():
        resource.setrlimit(resource.RLIMIT_CPU, (arguments.limit, arguments.limit + 1))

    def search(module, flags, variant):
        """The result of the fastest run; None if one exceeds the limit."""
        best = None
        for _ in range(arguments.repeat):
            try:
                line = json.loads(run("ablate-search", module, *flags, "--variant=" + variant,
                                      prepare=limit_time))  # fmt: skip
            except subprocess.CalledProcessError as error:
                # The handler of the first signal prints a stack trace meanwhile.
                if error.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
                    return None
                raise
            if best is None or line["seconds"] < best["seconds"]:
                best = line
        return best

    models = [name for name in arguments.models.split(",") if name] or list(MODELS)
    wanted = [name for name in arguments.variants.split(",") if name]
    variants = [name for name in run("ablate-search", "--list").splitlines()
                if not wanted or name in [*wanted, WHOLE]]  # fmt: skip
    rows = {variant: [] for variant in variants}
    with tempfile.TemporaryDirectory() as folder:
        for name in models:
            source, flags = MODELS[name]
            if not isinstance(source, str):
                generate, source = source, os.path.join(folder, "model.mlir")
                run("shardc-gen", *generate, "-o", source)
            module = os.path.join(folder, "module.mlir")
            run("shardc-opt", source, "--compile-to=differentiate", "-o", module)
            whole = search(module, flags, WHOLE)
            for variant in variants:
                line = whole if variant == WHOLE else search(module, flags, variant)
                text = cell(line, whole) if line else f"> {arguments.limit} s"
                rows[variant].append(text)
                print(f"{name}: {variant}: {text}", file=sys.stderr, flush=True)
    print("| search | " + " | ".join(models) + " |")
    print("|---" * (len(models) + 1) + "|")
    for variant, cells in rows.items():
        print(f"| {variant} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    sys.exit(main())
