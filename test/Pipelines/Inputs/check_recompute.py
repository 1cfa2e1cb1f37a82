"""Compares --recompute=auto with all choices for the layers of a model, each compiled, at several limits."""

import argparse
import itertools
import json
import re
import subprocess
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--layers", type=int, required=True, help="layers that have a choice")
arguments, options = parser.parse_known_args()


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def compile_json(*flags):
    return json.loads(run("shardc-compile", "--json", "--target=cpu:x86-64-v3", *flags))


plain = compile_json(arguments.model, *options)
collectives = run("shardc-opt", arguments.model, "--compile-to=collectives", *options)
plans = []
with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
    for letters in itertools.product("krj", repeat=arguments.layers):
        text = "".join(letters)
        if text.startswith("j") or "kj" in text:
            continue
        command = ["shardc-opt", "-", "--mlir-print-debuginfo", f"--shardc-recompute=choices={text}"]
        changed = subprocess.run(command, input=collectives, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if changed.returncode:
            # Not every output can be computed again.
            assert "cannot be joined" in changed.stderr, changed.stderr
            continue
        file.seek(0)
        file.truncate()
        file.write(changed.stdout)
        file.flush()
        report = compile_json("--compile-from=collectives", file.name)
        plans.append((report["peak_bytes_per_device"], report["time"]["overlapped_microseconds"], text))
for plan in sorted(plans):
    print(*plan)
most, least = plain["peak_bytes_per_device"], min(plans)[0]
assert least < most, (least, most)
limits = sorted({most, least} | {least + (most - least) * part // 5 for part in range(1, 5)})
for limit in limits:
    found = compile_json(arguments.model, "--recompute=auto", f"--device-memory={limit}", *options)
    # Everything is kept where that fits.
    allowed = plans if limit < most else [(most, plain["time"]["overlapped_microseconds"], "")]
    best = min(microseconds for peak, microseconds, _ in allowed if peak <= limit)
    microseconds = found["time"]["overlapped_microseconds"]
    print("limit", limit, "peak", found["peak_bytes_per_device"], "us", microseconds, "best", best)
    assert found["peak_bytes_per_device"] <= limit
    assert microseconds <= best * (1 + 1e-9), limit
    assert found["recompute"]["other_peak_bytes"] == most
command = ["shardc-compile", arguments.model, "--json", "--recompute=auto", f"--device-memory={least - 1}", *options]
refused = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
assert refused.returncode == 4, refused
assert re.search(f"no choice of the values to keep fits in {least - 1} bytes: the least found needs {least}", refused.stdout)
