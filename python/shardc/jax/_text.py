"""The text that shardc reads: StableHLO in generic form with shardc's roles."""

import inspect
import json
import os
import re
import sys

_RANGE = re.compile(r'(loc\("(?:[^"\\]|\\.)*":\d+:\d+) to [^)]*\)')
_NAME = re.compile(r'loc\(("(?:[^"\\]|\\.)*")\)')
_FILE = re.compile(r'\("((?:[^"\\]|\\.)*)":(?=\d)')
_ARGUMENT = re.compile(r'"flat\[(\d+)\]"')


def _relative(match):
    """Below the working directory, or else as it is imported: a file has the same
    text wherever Python and its packages are."""
    path = os.path.abspath(match.group(1))
    roots = [root for root in map(os.path.abspath, [os.getcwd(), *filter(None, sys.path)])
             if path.startswith(os.path.join(root, ""))]
    if roots and os.getcwd() not in roots:
        return f'("{os.path.relpath(path, max(roots, key=len))}":'
    return f'("{os.path.relpath(path) if roots else match.group(1)}":'


def _add(entries, name, values):
    """Attributes of arguments or results, each with one more."""
    from jaxlib.mlir import ir

    return ir.ArrayAttr.get([
        ir.DictAttr.get({**{pair.name: pair.attr for pair in old}, name: value})
        for old, value in zip(entries, values, strict=True)])


def _place(function):
    """Where a function begins, as in a location, or None."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code and f"{json.dumps(code.co_filename)}:{code.co_firstlineno}:1"


def _place_arguments(text, place):
    """Gives the arguments of main, which comes first, a place besides their names."""
    head, line, rest = re.split(r"^( *\^bb0\(.*)$", text, maxsplit=1, flags=re.MULTILINE)
    line = _NAME.sub(lambda match: f"loc({match.group(1)}({place}))", line)
    return head + line + rest


def _main(module):
    return next(op for op in module.operation.regions[0].blocks[0].operations
                if op.operation.name == "func.func"
                and op.attributes["sym_name"].value == "main")


def _copy_shardings(main, lowered):
    """Gives the arguments of `main` the shardings that they have in `lowered`."""
    from jaxlib.mlir import ir

    attributes = main.operation.attributes
    theirs = _main(lowered.compiler_ir("stablehlo")).attributes["arg_attrs"]
    key = "sdy.sharding"
    attributes["arg_attrs"] = ir.ArrayAttr.get([
        ir.DictAttr.get({**{pair.name: pair.attr for pair in own},
                         **({key: ir.Attribute.parse(str(other[key]))}
                            if key in other else {})})
        for own, other in zip(attributes["arg_attrs"], theirs, strict=True)])


def _append_loss(main, place):
    """Gives `main` one more result, which is that at `place` as float32, or 0."""
    from jaxlib.mlir import ir

    block = main.operation.regions[0].blocks[0]
    end = block.operations[len(block.operations) - 1]
    results = list(end.operands)
    scalar = ir.RankedTensorType.get([], ir.F32Type.get())
    with ir.InsertionPoint(end), end.location:
        if place is None:
            zero = ir.DenseElementsAttr.get_splat(scalar, ir.FloatAttr.get_f32(0.0))
            loss = ir.Operation.create("stablehlo.constant", [scalar],
                                       attributes={"value": zero})
        else:
            loss = ir.Operation.create("stablehlo.convert", [scalar], [results[place]])
        ir.Operation.create("func.return", [], [*results, loss.result])
    end.erase()
    attributes = main.operation.attributes
    types = attributes["function_type"].value
    attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get(types.inputs, [*types.results, scalar]))
    attributes["res_attrs"] = ir.ArrayAttr.get([*attributes["res_attrs"], ir.DictAttr.get()])


def to_text(lowered, function, names, roles, training, header, shardings_of=None,
            results=(), loss=None):
    """The module of a `Lowered` of `function` with a role on each argument of main.

    `shardings_of` is another `Lowered`, which has the shardings of the arguments. A
    train step has names of `results`, of which that at `loss` is the loss: one more
    result has it if none has this name."""
    from jaxlib.mlir import ir

    module = lowered.compiler_ir("stablehlo")
    context = module.context
    context.allow_unregistered_dialects = True
    with context, ir.Location.unknown():
        module = module.operation.clone()  # JAX may still compile its own.
        main = _main(module)
        if shardings_of is not None:
            _copy_shardings(main, shardings_of)
        attributes = main.operation.attributes
        attributes["arg_attrs"] = _add(attributes["arg_attrs"], "shardc.role",
                                       map(ir.Attribute.parse, roles))
        if results:
            if "loss" not in results:
                _append_loss(main, loss)
                results = [*results, "loss"]
            attributes["res_attrs"] = _add(attributes["res_attrs"], "shardc.result",
                                           map(ir.StringAttr.get, results))
        module.attributes["shardc.training"] = ir.Attribute.parse(training)
        # MLIR of other versions has no ranges of locations.
        text = module.get_asm(print_generic_op_form=True, enable_debug_info=True)
    text = _RANGE.sub(r"\1)", text)
    if place := _place(function):
        text = _place_arguments(text, place)
    text = _FILE.sub(_relative, text)
    text = _ARGUMENT.sub(lambda match: f'"{names[int(match.group(1))]}"', text)
    return header + text
