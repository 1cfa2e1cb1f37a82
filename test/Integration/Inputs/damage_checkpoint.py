"""damage_checkpoint.py CHECKPOINT COPY: changes a checkpoint in all places.

For each file of the checkpoint: makes a copy with one byte changed, for every fifth byte,
and cut off at every 23rd length. shardc-checkpoint verify must name the file and, in the
data of a safetensors file, a tensor. Many copies are verified at a time. Prints the number.
"""

import json
import os
import shutil
import subprocess
import sys

source, copy = sys.argv[1:]
shutil.rmtree(copy, ignore_errors=True)
os.mkdir(copy)


def changes():
    for name in sorted(os.listdir(source)):
        content = open(f"{source}/{name}", "rb").read()
        for place in range(0, len(content), 5):
            yield name, content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :]
        for length in range(0, len(content), 23):
            yield name, content[:length]


def check(batch):
    for number, (name, content) in enumerate(batch):
        folder = f"{copy}/step-{number}"
        shutil.copytree(source, folder)
        with open(f"{folder}/{name}", "wb") as file:
            file.write(content)
    arguments = ["shardc-checkpoint", "verify", "--json"]
    arguments += [f"{copy}/step-{number}" for number in range(len(batch))]
    run = subprocess.run(arguments, capture_output=True, text=True)
    assert run.returncode == 2, (run.returncode, run.stderr)
    results = json.loads(run.stdout)["checkpoints"]
    assert len(results) == len(batch)
    for (name, _), result in zip(batch, results):
        faults = result["faults"]
        assert len(faults) == 1 and result["path"] + "/" + name in faults[0], (name, faults)
        if name.endswith(".safetensors"):
            assert 'tensor "' in faults[0] or "it holds" in faults[0] or "cut off" in faults[0], faults
        shutil.rmtree(result["path"])


batch, number = [], 0
for change in changes():
    batch.append(change)
    number += 1
    if len(batch) == 400:
        check(batch)
        batch = []
if batch:
    check(batch)
print(number, "changes, each found")
