"""help_lines.py TOOL [FLAG]: prints the help of a tool (--help, or the flag), each
description behind its flag. Fails if a line has more than 100 columns."""
import subprocess
import sys

COLUMNS = 100
COLUMN = 36  # where descriptions begin

flag = sys.argv[2] if len(sys.argv) > 2 else "--help"
text = subprocess.run([sys.argv[1], flag], check=True, capture_output=True, text=True).stdout
joined = []
for line in text.splitlines():
    assert len(line) <= COLUMNS, f"{len(line)} columns: {line}"
    if joined and line.startswith(" " * COLUMN):
        joined[-1] += " " + line.strip()
    else:
        joined.append(line)
assert len(joined) > 10, text
print("\n".join(joined))
