"""write_safetensors.py FILE NAME=TYPE:SHAPE...: a file of zeros. SHAPE like 4x3."""

import json
import struct
import sys

WIDTHS = {"F16": 2, "F32": 4, "F64": 8, "U8": 1}
header, end = {}, 0
for text in sys.argv[2:]:
    name, rest = text.split("=")
    dtype, sizes = rest.split(":")
    shape = [int(size) for size in sizes.split("x")]
    begin, count = end, WIDTHS[dtype]
    for size in shape:
        count *= size
    end += count
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
encoded = json.dumps(header).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(encoded)) + encoded + bytes(end))
