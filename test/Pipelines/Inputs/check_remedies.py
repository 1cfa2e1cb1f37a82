"""Makes every change that `shardc-compile --explain` proposes for a model, in
its text, and compares the cost of the changed model with the cost printed.

usage: check_remedies.py MODEL.mlir WORK.mlir EXPECTED_REMEDIES [FLAG...]
"""

import functools
import json
import re
import subprocess
import sys

# Code for one CPU is enough.
model, work, expected, given = sys.argv[1], sys.argv[2], int(sys.argv[3]), ["--target=cpu:x86-64-v3", *sys.argv[4:]]


def run_json(path, *flags):
    command = ["shardc-compile", path, "--json", *flags]
    if path.endswith(".mlir"):
        command += given
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def set_stage(line, text):
    """Labels the op on the line."""
    if "shardc.stage" in line:
        return re.sub(r"shardc\.stage = \d+( : i64)?", text, line)
    before, types = line.split(" : ", 1)
    if before.endswith("}"):
        return before[:-1] + ", " + text + "} : " + types
    return before + " {" + text + "} : " + types


def constrain(line, text):
    """Puts a constraint behind the op on the line, with the name of its result."""
    value, op = line.strip().split(" = ", 1)
    # Without an arrow the result has the type of the first operand.
    types = re.findall(r"tensor<[^>]*>", op)
    result = types[-1 if "->" in op else 0]
    name, sharding = text.split(" ", 1)
    return f"{value}_free = {op}\n{value} = {name} {value}_free {sharding} : {result}"


def get_sent_bytes(program, stages):
    """The bytes of all sends, and of those between two stages."""
    every = between = 0
    for collective in program["collectives"]:
        if collective["kind"] == "send":
            every += collective["wire_bytes"]
            if get_stages(collective) == stages:
                between += collective["wire_bytes"]
    return every, between


def get_stages(send):
    tensor = send["tensors"][0]
    return tensor["producer"]["stage"], tensor["consumer"]["stage"]


def edit(lines, change):
    """Replaces the annotation at the line of the change, or adds it."""
    number = int(change["source"].split(":")[-2]) - 1
    if change["text"].startswith("shardc.stage"):
        lines[number] = set_stage(lines[number], change["text"])
        return
    if change["text"].startswith("shardc.sharding_constraint "):
        lines[number] = constrain(lines[number], change["text"])
        return
    name, value = change["text"].split(" = ", 1)
    sharding = r" = ((#shardc\.sharding)?<@mesh, \[[^\]]*\][^>]*>|#\w+)"
    line, count = re.subn(r"\b" + re.escape(name) + sharding, change["text"], lines[number])
    if count == 0:
        line = lines[number].replace("{shardc.role", "{" + change["text"] + ", shardc.role", 1)
    assert line != lines[number], (change, lines[number])
    lines[number] = line


def state_bytes(report):
    return sum(t["bytes"] for t in report["shardings"] if t["role"] in ("parameter", "state"))


@functools.cache
def compile_with(edits):
    """The report on the model with `edits`, a text, made in its text."""
    with open(model) as file:
        lines = file.read().splitlines()
    # Constraints last: they make two lines of one.
    for change in sorted(json.loads(edits), key=lambda change: "constraint" in change["text"]):
        edit(lines, change)
    with open(work, "w") as file:
        file.write("\n".join(lines) + "\n")
    subprocess.run(["shardc-compile", work, "-o", work + ".shardc", *given], check=True, capture_output=True)
    return run_json(work + ".shardc", "--report=comm,shardings", "--explain")


def check(remedy, before, collective, tensors):
    program = before["name"]
    report = compile_with(json.dumps(remedy["edits"]))
    totals = report if program == "train_step" else report["evaluate"]
    cost = remedy["cost"]
    assert cost["wire_bytes_per_device"] == totals["wire_bytes_per_device"], (remedy, totals)
    after = next(p for p in report["explanation"]["programs"] if p["name"] == program)
    priced = after["cost"]
    assert abs(cost["microseconds"] - priced["microseconds"]) < 1e-6, (remedy, priced)
    if "pipeline" not in report:
        assert cost["matmul_flops_per_device"] == totals["matmul_flops_per_device"], (remedy, totals)
        assert cost["state_bytes_per_device"] == state_bytes(report), remedy
    else:
        for name in priced:
            if name not in ("may_be_less", "microseconds"):
                assert cost[name] == priced[name], (name, remedy, priced)
        if program == "train_step":
            pipeline = report["pipeline"]
            assert cost["wire_bytes_of_all_ranks"] == pipeline["wire_bytes_of_all_ranks"], remedy
            assert cost["peak_bytes_per_device"] == report["peak_bytes_per_device"], (remedy, report)
            assert cost["matmul_flops_per_device"] == max(
                rank["matmul_flops_per_device"] for rank in pipeline["ranks"]
            ), (remedy, report)
    if collective["kind"] == "send":
        # A pipeline has sends: fewer bytes cross.
        stages = get_stages(collective)
        for now, then in zip(get_sent_bytes(before, stages), get_sent_bytes(after, stages)):
            assert then < now, (remedy, now, then)
        return
    # And it is gone. Names end with places, whose file is another one now.
    for other in after["collectives"]:
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
                check(remedy, program, collective, tensors)
                remedies += 1
print(remedies, "fix-its have the cost printed")
assert remedies == expected, remedies
