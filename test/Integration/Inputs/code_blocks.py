"""Writes the fenced blocks of one language in a Markdown file to numbered files.

code_blocks.py FILE.md LANGUAGE PREFIX writes PREFIX-1.LANGUAGE, PREFIX-2.LANGUAGE, ...
"""

import re
import sys

path, language, prefix = sys.argv[1:]
with open(path) as file:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", file.read(), re.DOTALL | re.MULTILINE)
if not blocks:
    sys.exit(f"{path}: no block of {language}")
for number, block in enumerate(blocks, 1):
    with open(f"{prefix}-{number}.{language}", "w") as out:
        out.write(block)
