"""Compiles a model with and without --regather, and checks the numbers that either report gives of the other choice."""

import argparse
import json
import subprocess

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--held", type=int, help="expected bytes held between the passes")
parser.add_argument("--wire", type=int, help="expected bytes more on the wire")
parser.add_argument("--gathers", type=int, help="expected all-gathers of the train step with --regather")
parser.add_argument("--peak", type=float, default=1, help="most of the peak that is left with --regather")
arguments, options = parser.parse_known_args()


def report(*flags):
    command = ["shardc-compile", arguments.model, "--json", "--target=cpu:x86-64-v3", *options, *flags]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


held, again = report(), report("--regather")
price, other = held["regather"], again["regather"]
print(price, other)
assert not price["taken"] and other["taken"]
for key, expected in (("wire_bytes", arguments.wire), ("held_bytes", arguments.held)):
    assert price[key] == other[key] > 0 and expected in (None, price[key]), key
assert again["wire_bytes_per_device"] - held["wire_bytes_per_device"] == price["wire_bytes"]
assert price["other_peak_bytes"] == again["peak_bytes_per_device"]
assert other["other_peak_bytes"] == held["peak_bytes_per_device"]
assert again["peak_bytes_per_device"] < arguments.peak * held["peak_bytes_per_device"]
assert again["matmul_flops_per_device"] == held["matmul_flops_per_device"]
gathers = sum(line["kind"] == "all_gather" for line in again["collectives"])
assert arguments.gathers in (None, gathers), gathers
