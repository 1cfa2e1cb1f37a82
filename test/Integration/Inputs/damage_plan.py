"""damage_plan.py PLAN COUNT: shardc-run must refuse PLAN with any byte changed.

Flips one bit at COUNT places spread over the file, and cuts the file at as many;
each time the exit code must be 2. A crash has another one.
"""

import subprocess
import sys
import tempfile

plan, count = open(sys.argv[1], "rb").read(), int(sys.argv[2])
failed = 0


def check(data, what):
    global failed
    with tempfile.NamedTemporaryFile(suffix=".shardc") as file:
        file.write(data)
        file.flush()
        done = subprocess.run(
            ["shardc-run", file.name, "--dry-run"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    if done.returncode != 2 or "shardc-run: " not in done.stderr:
        failed += 1
        print(f"{what}: exit code {done.returncode}, {done.stderr!r}")


for i in range(count):
    place = i * (len(plan) - 1) // max(1, count - 1)
    changed = bytearray(plan)
    changed[place] ^= 1 << (i % 8)
    check(bytes(changed), f"bit {i % 8} of byte {place} flipped")
    check(plan[:place], f"cut at byte {place}")
sys.exit(1 if failed else 0)
