"""Prints the JSON report of a model without the parts that depend on options alone: the
options given, and the cost of the plan that --partition=cheapest would take."""

import json
import subprocess
import sys

report = json.loads(subprocess.run(["shardc-compile", *sys.argv[1:], "--json"],
                                   stdout=subprocess.PIPE, check=True).stdout)  # fmt: skip
report.pop("compile_options", None)
report.get("cost", {}).pop("cheapest", None)
print(json.dumps(report, indent=2, sort_keys=True))
