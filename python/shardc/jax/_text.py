"""The text that shardc reads: StableHLO in generic form with shardc's roles."""

import os
import re

_RANGE = re.compile(r'(loc\("(?:[^"\\]|\\.)*":\d+:\d+) to [^)]*\)')


_FILE = re.compile(r'loc\("((?:[^"\\]|\\.)*)":(?=\d)')
_ARGUMENT = re.compile(r'"flat\[(\d+)\]"')


def _relative(match):
    path = match.group(1)
    inside = os.path.relpath(path)
    return f'loc("{path if inside.startswith("..") else inside}":'


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
        arguments = []
        for old, role in zip(attributes["arg_attrs"], roles, strict=True):
            pairs = {pair.name: pair.attr for pair in old}
            pairs["shardc.role"] = ir.Attribute.parse(role)
            arguments.append(ir.DictAttr.get(pairs))
        attributes["arg_attrs"] = ir.ArrayAttr.get(arguments)
        if results:
            named = []
            for old, name in zip(attributes["res_attrs"], results, strict=True):
                pairs = {pair.name: pair.attr for pair in old}
                pairs["shardc.result"] = ir.StringAttr.get(name)
                named.append(ir.DictAttr.get(pairs))
            attributes["res_attrs"] = ir.ArrayAttr.get(named)
        module.operation.attributes["shardc.training"] = ir.Attribute.parse(training)
        # MLIR of other versions has no ranges of locations.
        text = module.operation.get_asm(print_generic_op_form=True,
                                        enable_debug_info=True)
    text = _FILE.sub(_relative, _RANGE.sub(r"\1)", text))
    text = _ARGUMENT.sub(lambda match: f'"{names[int(match.group(1))]}"', text)
    return header + text
