"""Makes every change that `shardc-compile --explain` proposes for a model, in
its text, and compares the cost of the changed model with the cost printed.

usage: check_remedies.py MODEL.mlir WORK.mlir EXPECTED_REMEDIES
"""

import json
import re
import subprocess
import sys

model, work, expected = sys.argv[1], sys.argv[2], int(sys.argv[3])


def run_json(path, *flags):
    command = ["shardc-compile", path, "--json", *flags]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def edit(lines, change):
    """Replaces the annotation at the line of the change, or adds it."""
    number = int(change["source"].split(":")[-2]) - 1
    name, value = change["text"].split(" = ", 1)
    sharding = r" = (#shardc\.sharding)?<@mesh, \[[^\]]*\][^>]*>"
    line, count = re.subn(r"\b" + re.escape(name) + sharding, change["text"], lines[number])
    if count == 0:
        line = lines[number].replace("{shardc.role", "{" + change["text"] + ", shardc.role", 1)
    assert line != lines[number], (change, lines[number])
    lines[number] = line


def state_bytes(report):
    return sum(t["bytes"] for t in report["shardings"] if t["role"] in ("parameter", "state"))


def check(remedy, program, collective, tensors):
    with open(model) as file:
        lines = file.read().splitlines()
    for change in remedy["edits"]:
        edit(lines, change)
    with open(work, "w") as file:
        file.write("\n".join(lines) + "\n")
    subprocess.run(["shardc-compile", work, "-o", work + ".shardc"], check=True, capture_output=True)
    report = run_json(work + ".shardc", "--report=comm,shardings", "--explain")
    totals = report if program == "train_step" else report["evaluate"]
    cost = remedy["cost"]
    assert cost["wire_bytes_per_device"] == totals["wire_bytes_per_device"], (remedy, totals)
    assert cost["matmul_flops_per_device"] == totals["matmul_flops_per_device"], (remedy, totals)
    assert cost["state_bytes_per_device"] == state_bytes(report), remedy
    priced = next(p for p in report["explanation"]["programs"] if p["name"] == program)["cost"]
    assert abs(cost["microseconds"] - priced["microseconds"]) < 1e-6, (remedy, priced)
    # And it is gone. Names end with places, whose file is another one now.
    after = report["explanation"]["programs"]
    for other in next(p for p in after if p["name"] == program)["collectives"]:
        if other["kind"] == collective["kind"] and set(other["axes"]) & set(collective["axes"]):
            names = [t["name"].replace(work.split("/")[-1], model.split("/")[-1]) for t in other["tensors"]]
            assert not set(names) & set(tensors), (remedy, other)


remedies = 0
for program in run_json(model, "--explain")["explanation"]["programs"]:
    for collective in program["collectives"]:
        assert collective["changes_tried"] <= 8, collective
        names = [t["name"] for t in collective["tensors"]]
        proposals = [(collective["remedy"], names)]
        proposals += [(t["remedy"], [t["name"]]) for t in collective["tensors"]]
        for remedy, tensors in proposals:
            if remedy:
                check(remedy, program["name"], collective, tensors)
                remedies += 1
print(remedies, "fix-its have the cost printed")
assert remedies == expected, remedies
