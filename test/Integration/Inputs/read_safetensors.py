"""read_safetensors.py FILE.safetensors FILE.npz: compares two archives of f32, without NumPy."""

import json
import struct
import sys
import zipfile

content = open(sys.argv[1], "rb").read()
(length,) = struct.unpack("<Q", content[:8])
header = json.loads(content[8 : 8 + length])
header.pop("__metadata__")
data = content[8 + length :]
assert (8 + length) % 64 == 0
archive = zipfile.ZipFile(sys.argv[2])
assert sorted(name + ".npy" for name in header) == sorted(archive.namelist())
end = 0
for name, tensor in header.items():
    begin, end_ = tensor["data_offsets"]
    assert begin == end and tensor["dtype"] == "F32", tensor
    end = end_
    array = archive.read(name + ".npy")
    (header_length,) = struct.unpack("<H", array[8:10])
    shape = "(" + ", ".join(map(str, tensor["shape"])) + ("," if len(tensor["shape"]) == 1 else "") + ")"
    assert shape.encode() in array[: 10 + header_length], (shape, array[:128])
    assert array[10 + header_length :] == data[begin:end], name
assert end == len(data)
print("the same", len(header), "arrays")
