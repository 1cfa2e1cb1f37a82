"""Moves one result at a time in IR of the phase memory to another place in the arena.

Each plan is refused, or trains to the bits of the plan of the IR as it was.
"""

import filecmp
import random
import re
import subprocess
import sys

ir_path, count, work = sys.argv[1], int(sys.argv[2]), sys.argv[3]


def compile_plan(path, plan):
    command = ["shardc-compile", path, "--compile-from=memory", "-o", plan]
    return subprocess.run(command, capture_output=True, text=True)


def train(plan, parameters):
    command = ["shardc-run", plan, "--data=synthetic:quadratic", "--steps=3"]
    subprocess.run(command + [f"--save-params={parameters}"], check=True, capture_output=True)


with open(ir_path) as file:
    ir = file.read()
assert compile_plan(ir_path, f"{work}.shardc").returncode == 0
train(f"{work}.shardc", f"{work}.npz")
places = list(re.finditer(r"shardc\.offsets = array<i64: ([\d, ]+)>", ir))
arena = int(re.search(r"shardc\.arena_bytes = (\d+)", ir)[1])
choose = random.Random(7)
refused = same = 0
while refused + same < count:
    place = choose.choice(places)
    offsets = place[1].split(", ")
    number, moved = choose.randrange(len(offsets)), str(choose.randrange(arena // 64) * 64)
    if moved == offsets[number]:
        continue
    offsets[number] = moved
    with open(f"{work}.ir", "w") as file:
        file.write(ir[: place.start(1)] + ", ".join(offsets) + ir[place.end(1) :])
    made = compile_plan(f"{work}.ir", f"{work}.moved.shardc")
    if made.returncode != 0:
        assert made.returncode == 2 and "contract of the phase 'memory'" in made.stderr, made.stderr
        refused += 1
        continue
    train(f"{work}.moved.shardc", f"{work}.moved.npz")
    assert filecmp.cmp(f"{work}.npz", f"{work}.moved.npz", shallow=False), (place[0], offsets)
    same += 1
print(f"{refused} refused, {same} the same")
