"""Compares the losses of a run in f32 with those of runs in bf16.

    compare_dtypes.py F32 BF16...     (files of --metrics)

In bf16 losses are others, but by less than a hundredth of the first one, and they
fall as far.
"""

import json
import sys

f32, *others = (
    [json.loads(line)["loss"] for line in open(path)] for path in sys.argv[1:]
)
for bf16 in others:
    distance = max(abs(a - b) for a, b in zip(bf16, f32, strict=True)) / f32[0]
    print("distance", distance, "last", f32[-1], bf16[-1])
    assert 0 < distance < 0.01
    assert bf16[-1] < f32[0] / 5
