"""Reads from the IR of a module what its functions compute where: the types, names and
shardings of arguments and results, and the sizes of GEMMs. For scripts that check
the compiler without relying on its own accounts.
"""

import math
import re


def dimensions(text):
    """The sizes in "32x16xf32"."""
    return [int(size) for size in text.split("x")[:-1]]


def parse_shardings(attributes, aliases=()):
    """Key -> one tuple of axes per dimension, for each sharding among `attributes`."""
    for name, value in aliases:
        attributes = re.sub(re.escape(name) + r"(?![\w.])", lambda _: value, attributes)
    found = {}
    for key, dims, rest in re.findall(r"shardc\.(\w*sharding) = #shardc\.sharding<@mesh, \[(.*?)\]([^>]*)>", attributes):
        if "?" in dims or rest:
            raise ValueError(f"closed shardings without options expected: {dims}{rest}")
        found[key] = [tuple(re.findall(r'"(\w+)"', dim)) for dim in re.findall(r"\{(.*?)\}", dims)]
    return found


class Function:
    """What is compared of a function: the types, names and shardings of its arguments
    and results, and its GEMMs."""

    def __init__(self, name, header, body, aliases):
        self.name = name
        arguments, _, results = header.partition("->")
        self.arguments = self.parse_values(arguments, aliases)
        self.results = self.parse_values(results, aliases)
        # (result, contracted sizes, how often it runs)
        self.gemms, runs = [], 1
        for line in body.splitlines():
            loop = re.search(r"shardc\.accumulate (\d+) of", line)
            runs = int(loop.group(1)) if loop else 1 if line.startswith("    }") else runs
            if "shardc.dot_general" in line:
                dims = re.search(r"contracting = \[([\d, ]*)\]", line).group(1)
                left, _, result = map(dimensions, re.findall(r"tensor<(\S*?)>", line)[-3:])
                self.gemms.append((result, [left[int(dim)] for dim in dims.split(",")], runs))

    @staticmethod
    def parse_values(text, aliases):
        """(name or None, sizes, shardings, attributes) of each tensor<…> {…}."""
        values = []
        for sizes, attributes in re.findall(r"tensor<(\S*?)>(?: \{((?:[^{}]|\{[^{}]*\})*)\})?", text):
            name = re.search(r'shardc\.(?:role = #shardc\.\w+<|result = )"([^"]*)"', attributes)
            values.append((name and name.group(1), dimensions(sizes), parse_shardings(attributes, aliases), attributes))
        return values

    def flops(self):
        """Of all GEMMs."""
        return sum(2 * math.prod(result + contracted) * runs for result, contracted, runs in self.gemms)


def parse_functions(text):
    """The functions in the text of a module, by name."""
    aliases = re.findall(r"^(#\w+) = (#shardc\.sharding<.*>)$", text, re.M)
    functions = re.findall(r"^ *func\.func @(\w+)\((.*?)\{\n(.*?)^ {0,2}\}$", text, re.M | re.S)
    return {name: Function(name, header, body, aliases) for name, header, body in functions}
