"""Runs the code cells of a notebook in order, without Jupyter.

V/bin/python python/tests/run_notebook.py [--write] NOTEBOOK.ipynb

Without --write it fails if a cell prints something else than the notebook has; with
it the outputs are written into the notebook. V has what scripts/check-python.sh
installs.
"""

import ast
import contextlib
import io
import json
import pathlib
import sys


def run_cell(source, names):
    """The outputs of a cell, as a notebook has them: what it prints, and the value
    of an expression in its last line."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if last:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    outputs = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": to_lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": to_lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = to_lines(value._repr_html_())
        outputs.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return outputs


def to_lines(text):
    return text.splitlines(keepends=True)


def run(path):
    """The notebook in `path` with the outputs that its cells have now."""
    notebook = json.loads(path.read_text())
    names, number = {"__name__": "__main__"}, 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        number += 1
        cell["outputs"] = run_cell("".join(cell["source"]), names)
        cell["execution_count"] = number
        for output in cell["outputs"]:
            if "execution_count" in output:
                output["execution_count"] = number
    return notebook


def find_differences(before, after):
    """A line for each cell whose outputs differ."""
    return [
        f"cell {new['execution_count']}: {new['outputs']}\n  the notebook has {old['outputs']}"
        for old, new in zip(before["cells"], after["cells"])
        if old["cell_type"] == "code" and old["outputs"] != new["outputs"]
    ]


def main():
    *flags, path = sys.argv[1:]
    path = pathlib.Path(path)
    before = json.loads(path.read_text())
    after = run(path)
    if flags == ["--write"]:
        path.write_text(json.dumps(after, indent=1, ensure_ascii=False) + "\n")
    elif differences := find_differences(before, after):
        sys.exit("\n".join([*differences, f"write them anew: {__file__} --write {path}"]))


if __name__ == "__main__":
    main()
