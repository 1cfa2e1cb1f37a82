"""Compares what shardc-compile reports with and without --regather (two JSON files)."""

import argparse
import json

parser = argparse.ArgumentParser()
parser.add_argument("held")
parser.add_argument("again")
parser.add_argument("--gathers", type=int, required=True, help="all-gathers of the train step expected with --regather")
arguments = parser.parse_args()
held, again = (json.load(open(path)) for path in (arguments.held, arguments.again))

price = held["regather"]
assert not price["taken"] and again["regather"]["taken"]
for key in ("wire_bytes", "held_bytes"):
    assert again["regather"][key] == price[key] > 0, (held["regather"], again["regather"])
assert again["wire_bytes_per_device"] - held["wire_bytes_per_device"] == price["wire_bytes"]
assert price["other_peak_bytes"] == again["peak_bytes_per_device"]
assert again["regather"]["other_peak_bytes"] == held["peak_bytes_per_device"]
assert again["peak_bytes_per_device"] < held["peak_bytes_per_device"]
assert again["matmul_flops_per_device"] == held["matmul_flops_per_device"]
gathers = [line for line in again["collectives"] if line["kind"] == "all_gather"]
assert len(gathers) == arguments.gathers, len(gathers)
print({key: (held[key], again[key]) for key in ("wire_bytes_per_device", "peak_bytes_per_device")})
