"""check_page.py PAGE JSON [NAME]: the page is well-formed, refers to no other file,
has the numbers of the JSON, and NAME as text."""

import html.parser
import json
import sys

VOID = {"meta", "br"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.opened, self.values, self.text, self.ids = [], [], "", set()
        self.scripts, self.rows = [], []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        for name, value in attributes.items():
            assert not name.startswith("on"), attributes
            assert name not in ("src", "style"), attributes
            assert name != "href" or value.startswith("#"), attributes
        if "id" in attributes:
            assert attributes["id"] not in self.ids, attributes
            self.ids.add(attributes["id"])
        if tag not in VOID:
            self.opened.append(tag)
        if tag == "tr":
            self.rows.append((attributes.get("class"), []))
        if tag == "data":
            self.values.append(float(attributes["value"]))
            if self.rows:
                self.rows[-1][1].append(float(attributes["value"]))
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.opened.pop()

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        if self.opened and self.opened[-1] == "script":
            self.scripts[-1] += data
        else:
            self.text += data


page = Page()
page.feed(open(sys.argv[1], encoding="utf-8").read())
report = json.load(open(sys.argv[2], encoding="utf-8"))
assert not page.opened, page.opened
assert len(page.scripts) == 2, len(page.scripts)
data = json.loads(page.scripts[0])

for field in ("peak_bytes_per_device", "wire_bytes_per_device", "batch_size",
              "matmul_flops_per_device"):
    assert report[field] in page.values, field
assert report["time"]["communication_microseconds"] in page.values
for tensor in report["shardings"]:
    assert tensor["bytes"] in page.values and tensor["name"] in page.text, tensor
for kind in ("parameters", "gradients", "activations", "workspace"):
    assert report["memory"][kind] in page.values, kind
groups = [row for name, row in page.rows if name == "collective"]
assert sum(row[0] for row in groups) == len(report["collectives"]), groups
assert sum(row[1] for row in groups) == report["wire_bytes_per_device"], groups
# The buffers that the page shows on hover.
memory = report["memory"]
over_time = memory["over_time"]
assert [it[2:5] for it in data["memory"][0]["buffers"]] == \
    [[it["bytes"], it["first"], it["last"]] for it in over_time["buffers"]]
alive = [it for it in over_time["buffers"] if it["first"] <= over_time["peak"] <= it["last"]]
for kind in ("parameters", "optimizer", "gradients", "activations", "inputs"):
    assert sum(it["bytes"] for it in alive if it["kind"] == kind) == memory[kind], kind
for name in sys.argv[3:]:
    assert name in page.text, name
