"""Checks that helps of tools (further arguments) have every row of the table of
compile options of a page (the first): the flag, the meaning and the default. In
FILE:OPTION the option is left out."""
import re
import sys

page = open(sys.argv[1]).read()
table = page.split("<!-- compile options:")[1].split("<!-- end -->")[0]
rows = [line.replace("\\|", "¦").split("|")[1:4] for line in table.splitlines()[3:]]
assert len(rows) >= 17, "no table of compile options"
for argument in sys.argv[2:]:
    path, _, own = argument.partition(":")
    # Helps break lines where a terminal would.
    text = " ".join(open(path).read().split())
    for cells in rows:
        flag, default, meaning = (cell.strip().replace("¦", "|") for cell in cells)
        name = re.match("`(--[a-z-]+)", flag).group(1)
        expected = meaning + (f" (default: {default})" if default else "")
        if name == "--" + own:
            continue
        assert re.search(re.escape(name) + r"[ =]", text), f"{path}: no {name}"
        assert expected in text, f"{path}: {name} is not said to {expected!r}"
