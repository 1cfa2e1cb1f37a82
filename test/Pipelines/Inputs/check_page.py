"""check_page.py PAGE JSON [NAME]: the page is well-formed, refers to no other file,
has the numbers of the JSON, and NAME as text."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../scripts"))
from report_page import Page  # noqa: E402

page = Page(sys.argv[1])
report = json.load(open(sys.argv[2], encoding="utf-8"))

for field in ("peak_bytes_per_device", "wire_bytes_per_device", "batch_size",
              "matmul_flops_per_device"):
    assert report[field] in page.values, field
assert report["time"]["communication_microseconds"] in page.values
for tensor in report["shardings"]:
    assert tensor["bytes"] in page.values and tensor["name"] in page.text, tensor
for kind in ("parameters", "gradients", "activations", "workspace"):
    assert report["memory"][kind] in page.values, kind
groups = page.get_rows("collective")
assert sum(row[0] for row in groups) == len(report["collectives"]), groups
assert sum(row[1] for row in groups) == report["wire_bytes_per_device"], groups
# The buffers that the page shows on hover.
memory = report["memory"]
over_time = memory["over_time"]
assert [it[2:5] for it in page.data["memory"][0]["buffers"]] == \
    [[it["bytes"], it["first"], it["last"]] for it in over_time["buffers"]]
alive = [it for it in over_time["buffers"] if it["first"] <= over_time["peak"] <= it["last"]]
for kind in ("parameters", "optimizer", "gradients", "activations", "inputs"):
    assert sum(it["bytes"] for it in alive if it["kind"] == kind) == memory[kind], kind
for name in sys.argv[3:]:
    assert name in page.text, name
