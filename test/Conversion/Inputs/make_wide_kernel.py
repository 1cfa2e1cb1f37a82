"""Writes a program with one kernel that adds up COUNT operands.

usage: make_wide_kernel.py COUNT
"""

import sys

count = int(sys.argv[1])
tensor = "tensor<8xf32>"
operands = ", ".join(["%x"] * count)
types = ", ".join([tensor] * count)
arguments = ", ".join(f"%a{i}: {tensor}" for i in range(count))
print('shardc.mesh @mesh <["data" = 1]>')
print(f"func.func @wide(%x: {tensor}) -> {tensor} {{")
print(f"  %0 = shardc.kernel({operands}) : ({types}) -> {tensor} {{")
print(f"  ^bb0({arguments}):")
last = "%a0"
for i in range(1, count):
    print(f"    %s{i} = shardc.add {last}, %a{i} : {tensor}")
    last = f"%s{i}"
print(f"    shardc.yield {last} : {tensor}")
print("  }")
print(f"  return %0 : {tensor}")
print("}")
