"""write_npz.py FILE NAME=DTYPE:SHAPE:VALUES...: an .npz archive without NumPy.

DTYPE is f4, f8, i4 or i8, SHAPE like 4x3 ("" for a scalar), VALUES a list that is
repeated to fill the array: x=f4:8x10:0.5,nan. The word "truncated" after FILE cuts
the archive in half.
"""

import itertools
import struct
import sys
import zipfile

CODES = {"f4": "f", "f8": "d", "i4": "i", "i8": "q"}
path, arrays = sys.argv[1], sys.argv[2:]
truncated = "truncated" in arrays
with zipfile.ZipFile(path, "w") as archive:
    for text in arrays:
        if text == "truncated":
            continue
        name, rest = text.split("=", 1)
        dtype, shape, values = rest.split(":")
        sizes = [int(size) for size in shape.split("x") if size]
        count = 1
        for size in sizes:
            count *= size
        read = float if dtype[0] == "f" else int
        flat = list(itertools.islice(itertools.cycle(map(read, values.split(","))), count))
        header = f"{{'descr': '<{dtype}', 'fortran_order': False, 'shape': ({''.join(f'{s},' for s in sizes)}), }}"
        header += " " * (-(len(header) + 11) % 64) + "\n"
        archive.writestr(
            name + ".npy",
            b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
            + struct.pack(f"<{count}{CODES[dtype]}", *flat),
        )  # fmt: skip
if truncated:
    data = open(path, "rb").read()
    open(path, "wb").write(data[: len(data) // 2])
