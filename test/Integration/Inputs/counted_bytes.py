"""Compares the bytes that shardc-compile reports with those that shardc-run counts."""

import collections
import json
import subprocess
import sys
import tempfile

# Strategy, mesh, batch size, microbatches, and flags of the compiler.
CASES = [
    ("dp", "data=8", 30, 1), ("zero1", "data=3", 32, 1), ("zero2", "data=4", 31, 1), ("fsdp", "data=6", 64, 1),
    ("tp", "model=4", 16, 1), ("dp+tp", "data=2,model=3", 20, 1), ("fsdp+tp", "data=4,model=2", 33, 1),
    ("hsdp", "replica=2,shard=3", 32, 1), ("hsdp+tp", "replica=2,shard=2,model=2", 40, 1), ("none", "", 8, 1),
    ("dp", "data=8", 32, 4), ("fsdp", "data=6", 36, 3), ("tp", "model=4", 16, 8), ("fsdp+tp", "data=4,model=2", 32, 2),
    ("fsdp", "data=6", 64, 1, "--regather"), ("fsdp", "data=4", 32, 4, "--regather"),
    ("fsdp+tp", "data=2,model=3", 20, 1, "--regather"), ("hsdp", "replica=2,shard=3", 32, 1, "--regather"),
    ("pp", "stage=3", 30, 5), ("fsdp+pp", "stage=2,data=3", 36, 4), ("dp+tp+pp", "stage=2,data=2,model=2", 24, 3),
]  # fmt: skip


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


failed = False
with tempfile.TemporaryDirectory() as folder:
    for strategy, mesh, batch, microbatches, *options in CASES:
        model, plan, metrics = f"{folder}/m.mlir", f"{folder}/m.shardc", f"{folder}/m.jsonl"
        flags = [f"--mesh={mesh}"] if mesh else []
        run("shardc-gen", "--layers=10,13,7,3,1", "--optimizer=adam", f"--strategy={strategy}",
            f"--batch-size={batch}", f"--microbatches={microbatches}", "-o", model, *flags)  # fmt: skip
        report = json.loads(run("shardc-compile", model, "--json", "--target=cpu:x86-64-v3", "-o", plan, *options))
        summary = json.loads(
            run("shardc-run", plan, "--data=synthetic:quadratic", "--steps=3", "--json", f"--metrics={metrics}")
        )
        counted = [json.loads(line)["wire_bytes"] for line in open(metrics)]
        wire, peak = report["wire_bytes_per_device"], report["peak_bytes_per_device"]
        # The lines of each rank of a pipeline.
        totals = collections.Counter()
        for line in report["collectives"]:
            totals[line.get("rank", 0)] += line["wire_bytes"]
        total = max(totals.values(), default=0)
        agrees = counted == [wire] * 3 and summary["peak_bytes_per_device"] == peak and total == wire
        failed |= not agrees
        print(f"{strategy} {mesh}, {microbatches} microbatches {' '.join(options)}: reported {wire} B in {total} B of lines, counted {counted}; arena {peak} B"
              f"{'' if agrees else ' MISMATCH'}")  # fmt: skip
sys.exit(failed)
