"""Compares the losses of a run in f32, the same again, in tf32 and in bf16.

    compare_precisions.py HIGHEST SAME TF32 BF16     (files of --metrics)

The first two are equal; rounding factors to bf16 changes losses more than
rounding to tf32, which changes them at all, and both by less than a percent.
"""

import json
import sys

highest, same, tf32, bf16 = (
    [json.loads(line)["loss"] for line in open(path)] for path in sys.argv[1:]
)


def distance(losses):
    return max(abs(a - b) / abs(b) for a, b in zip(losses, highest, strict=True))


assert len(highest) == 10 and same == highest
print("tf32", distance(tf32), "bf16", distance(bf16))
assert 0 < distance(tf32) < distance(bf16) < 0.01
