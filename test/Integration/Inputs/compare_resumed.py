"""Compares a run with one that stopped and went on, bit for bit.

    compare_resumed.py ALL FIRST REST    (with .jsonl, of --metrics; .npz, of
                                          --save-params; .txt, the output)

The losses of the first part and the rest are those of all; the rest ends with the same
parameters, and its evaluation finds the same.
"""

import json
import sys
import zipfile


def losses(name):
    return [json.loads(line)["loss"] for line in open(name + ".jsonl")]


def parameters(name):
    archive = zipfile.ZipFile(name + ".npz")
    return {entry: archive.read(entry) for entry in archive.namelist()}


def evaluation(name):
    return [line for line in open(name + ".txt") if line.startswith("evaluation")]


whole, first, rest = sys.argv[1:]
assert losses(first) + losses(rest) == losses(whole), (losses(whole), losses(rest))
assert parameters(rest) == parameters(whole) != parameters(first)
assert len(evaluation(whole)) == 1 and evaluation(rest) == evaluation(whole)
