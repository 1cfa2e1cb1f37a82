#!/usr/bin/env python3
"""Prints the table of docs/JAX.md: the programs that have a test, and what they send.

Needs neither packages nor a build: reads test/Integration/JaxImport and
test/golden/jax, which make_goldens.py and communication.py wrote, and which the tests
compare with what shardc does."""

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
GOLDEN = ROOT / "test" / "golden" / "jax"
TESTS = ROOT / "test" / "Integration" / "JaxImport"


def kind(name):
    text = (GOLDEN / name / "model.mlir").read_text()
    if text.startswith("// A train step"):
        return "whole step"
    return "loss, " + re.search(r"optimizer = <(\w+)", text).group(1)


def sent(name):
    path = GOLDEN / name / "communication.json"
    if not path.exists():
        return "| | |"
    numbers = json.loads(path.read_text())
    return "| " + " | ".join("{} in {}".format(*reversed(numbers[key]))
                             for key in ("xla", "follow", "cheapest")) + " |"


def main():
    print("| program | exported as | tolerance | XLA | shardc | cheapest |")
    print("|---|---|---|---|---|---|")
    for test in sorted(TESTS.glob("*.test")):
        tolerance = re.findall(r"final\.npz (\S+) (\S+)", test.read_text())[0]
        print(f"| `{test.stem}` | {kind(test.stem)} | {', '.join(tolerance)} {sent(test.stem)}")


if __name__ == "__main__":
    main()
