"""The text that shardc reads: StableHLO in generic form with shardc's roles."""

import os
import re
import sys

_RANGE = re.compile(r'(loc\("(?:[^"\\]|\\.)*":\d+:\d+) to [^)]*\)')
_FILE = re.compile(r'loc\("((?:[^"\\]|\\.)*)":(?=\d)')
_ARGUMENT = re.compile(r'"flat\[(\d+)\]"')


def _relative(match):
    """Below the working directory, or else as it is imported: a file has the same
    text wherever Python and its packages are."""
    path = os.path.abspath(match.group(1))
    roots = [root for root in map(os.path.abspath, [os.getcwd(), *filter(None, sys.path)])
             if path.startswith(os.path.join(root, ""))]
    if roots and os.getcwd() not in roots:
        return f'loc("{os.path.relpath(path, max(roots, key=len))}":'
    return f'loc("{os.path.relpath(path) if roots else match.group(1)}":'


def _add(entries, name, values):
    """Attributes of arguments or results, each with one more."""
    from jaxlib.mlir import ir

    return ir.ArrayAttr.get([
        ir.DictAttr.get({**{pair.name: pair.attr for pair in old}, name: value})
        for old, value in zip(entries, values, strict=True)])


def to_text(lowered, names, roles, training, header, results=()):
    """The module of a `Lowered` with a role on each argument of main, and names of
    results if it is a train step."""
    from jaxlib.mlir import ir

    module = lowered.compiler_ir("stablehlo")
    context = module.context
    context.allow_unregistered_dialects = True
    with context, ir.Location.unknown():
        main = next(op for op in module.body.operations
                    if op.operation.name == "func.func"
                    and op.attributes["sym_name"].value == "main")
        attributes = main.operation.attributes
        attributes["arg_attrs"] = _add(attributes["arg_attrs"], "shardc.role",
                                       map(ir.Attribute.parse, roles))
        if results:
            attributes["res_attrs"] = _add(attributes["res_attrs"], "shardc.result",
                                           map(ir.StringAttr.get, results))
        module.operation.attributes["shardc.training"] = ir.Attribute.parse(training)
        # MLIR of other versions has no ranges of locations.
        text = module.operation.get_asm(print_generic_op_form=True,
                                        enable_debug_info=True)
    text = _FILE.sub(_relative, _RANGE.sub(r"\1)", text))
    text = _ARGUMENT.sub(lambda match: f'"{names[int(match.group(1))]}"', text)
    return header + text
