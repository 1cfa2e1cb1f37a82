"""write_tables.py FOLDER: the same rows as d.npz, as x.npy and y.npy, and as d.csv.

Inputs x are [24, 3] in f32, labels y are [24] integers below 4."""

import pathlib
import struct
import sys
import zipfile

folder = pathlib.Path(sys.argv[1])
rows = [[(7 * i + 3 * j) % 11 / 8 - 0.5 for j in range(3)] for i in range(24)]
labels = [(5 * i + 2) % 4 for i in range(24)]


def npy(descr, code, shape, values):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    return head + struct.pack(f"<{len(values)}{code}", *values)


x = npy("<f4", "f", "(24, 3)", [v for row in rows for v in row])
y = npy("<i4", "i", "(24,)", labels)
(folder / "x.npy").write_bytes(x)
(folder / "y.npy").write_bytes(y)
with zipfile.ZipFile(folder / "d.npz", "w") as archive:
    archive.writestr("x.npy", x)
    archive.writestr("y.npy", y)
lines = ["x0,x1,x2,y"]
lines += [",".join(map(str, row + [label])) for row, label in zip(rows, labels)]
(folder / "d.csv").write_text("\n".join(lines) + "\n")
(folder / "late.csv").write_text("\n".join(lines[:9] + ["1,2,x,3"] + lines[10:]) + "\n")
(folder / "short.csv").write_text("\n".join(lines[:9] + ["1,2"]) + "\n")
