"""Compares summaries of one training: eight devices that share replicas, eight
that do not, and one device.

  check_replicas.py SHARED APART ONE
  check_replicas.py --wire-bytes SHARED APART
"""

import json
import sys

if sys.argv[1] == "--wire-bytes":
    shared, apart = (json.load(open(path)) for path in sys.argv[2:])
    assert shared["wire_bytes_per_step"] == apart["wire_bytes_per_step"] > 0
    sys.exit()
shared, apart, one = (json.load(open(path)) for path in sys.argv[1:])
assert apart["allocated_bytes"] == 8 * apart["peak_bytes_per_device"], apart
assert one["allocated_bytes"] == one["peak_bytes_per_device"], one
# Parameters, states and the rows of the batch are there once; some partial sums are
# there eight times.
assert shared["allocated_bytes"] < 1.3 * one["allocated_bytes"], (shared, one)
assert shared["allocated_bytes"] < apart["allocated_bytes"] / 4, (shared, apart)
assert shared["wire_bytes_per_step"] == apart["wire_bytes_per_step"] > 0
