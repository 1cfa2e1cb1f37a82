"""Compares arrays of f32 in files .npy, .npz and .safetensors, without NumPy.

    compare_predictions.py TOLERANCE FILE FILE...
    compare_predictions.py labels DATA.npz SUMMARY.json FILE

Shapes are equal, and numbers differ by TOLERANCE times the largest one at most. With
`labels` the numbers are logits of the classes in array y: their mean cross-entropy and
the number of greatest logits that are right are those of an evaluation with --json.
"""

import json
import math
import re
import struct
import sys
import zipfile


def parse_npy(content, code="f"):
    (length,) = struct.unpack("<H", content[8:10])
    header = content[10 : 10 + length].decode()
    shape = [int(size) for size in re.search(r"'shape': \(([^)]*)\)", header)[1].split(",") if size.strip()]
    assert f"'<{code}4'" in header, header
    values = content[10 + length :]
    return shape, struct.unpack(f"<{len(values) // 4}{code}", values)


def read(path):
    content = open(path, "rb").read()
    if path.endswith(".npz"):
        return parse_npy(zipfile.ZipFile(path).read("prediction.npy"))
    if path.endswith(".npy"):
        return parse_npy(content)
    (length,) = struct.unpack("<Q", content[:8])
    entry = json.loads(content[8 : 8 + length])["prediction"]
    assert entry["dtype"] == "F32", entry
    return entry["shape"], struct.unpack(f"<{len(content[8 + length:]) // 4}f", content[8 + length :])


def check_labels(data, summary, path):
    _, labels = parse_npy(zipfile.ZipFile(data).read("y.npy"), "i")
    (rows, classes), logits = read(path)
    evaluation = json.load(open(summary))
    assert rows == len(labels) == evaluation["eval_rows"], (rows, len(labels))
    loss = correct = 0
    for row, label in enumerate(labels):
        of = logits[row * classes : (row + 1) * classes]
        largest = max(of)
        loss += math.log(sum(math.exp(each - largest) for each in of)) + largest - of[label]
        correct += of.index(largest) == label
    assert abs(loss / rows - evaluation["eval_loss"]) < 1e-5 * evaluation["eval_loss"], (loss / rows, evaluation)
    assert correct == round(evaluation["eval_accuracy"] * rows), (correct, evaluation)


if sys.argv[1] == "labels":
    check_labels(*sys.argv[2:])
    sys.exit()
tolerance, first, *others = sys.argv[1:]
shape, values = read(first)
scale = max(map(abs, values))
assert scale > 0 and math.prod(shape) == len(values), (shape, len(values))
for other in others:
    found, numbers = read(other)
    assert found == shape, (other, found, shape)
    distance = max(abs(a - b) for a, b in zip(values, numbers, strict=True)) / scale
    print(other, "differs by", distance)
    assert distance <= float(tolerance), other
