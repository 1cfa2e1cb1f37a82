"""flip_byte.py OFFSET FILE: changes one byte, counted from the end if negative."""

import sys

offset, path = int(sys.argv[1]), sys.argv[2]
with open(path, "rb") as file:
    content = bytearray(file.read())
content[offset] ^= 0x40
with open(path, "wb") as file:
    file.write(content)
