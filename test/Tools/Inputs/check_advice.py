"""Compiles the model that shardc-advise wrote as its first line says: step and memory are those of the first row."""

import json
import shlex
import subprocess
import sys

path, advice = sys.argv[1:]
with open(path) as file:
    command = shlex.split(file.readline().removeprefix("// "))
with open(advice) as file:
    plan = json.load(file)["plans"][0]
done = subprocess.run(command + ["--json", "--report=comm,memory,pipeline"], stdout=subprocess.PIPE, check=True)
report = json.loads(done.stdout)
if "pipeline" in report:
    seconds = report["cost"]["cost"]
    bubble = report["pipeline"]["bubble"]
    assert abs(bubble - plan["bubble"]) < 1e-9, (bubble, plan["bubble"])
else:
    seconds = report["time"]["overlapped_microseconds"] / 1e6
assert abs(seconds / plan["step_seconds"] - 1) < 1e-9, (seconds, plan["step_seconds"])
peak = report["peak_bytes_per_device"]
assert peak == plan["peak_bytes_per_device"], (peak, plan["peak_bytes_per_device"])
assert report["mesh"] == plan["mesh"], (report["mesh"], plan["mesh"])
print(f"{plan['strategy']}: as advised")
