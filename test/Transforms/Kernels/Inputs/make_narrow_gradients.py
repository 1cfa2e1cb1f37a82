"""Prints kernels of so many narrow layers' gradients, each of 1024 rows and 32 columns, with the updates of weights.

The factors that a gradient reads are of the layer alone, so that sums of blocks of rows are most of the memory.
"""

import sys

layers = int(sys.argv[1])
rows, weight = "tensor<1024x32xf32>", "tensor<32x32xf32>"

print("module {")
arguments = [f'%x: {rows} {{shardc.role = #shardc.input<"x">}}']
for i in range(layers):
    arguments.append(f'%w{i}: {weight} {{shardc.role = #shardc.parameter<"w{i}", constant(0.0)>}}')
results = ", ".join([rows] + [weight] * layers)
print(f"func.func @train_step({', '.join(arguments)}) -> ({results}) {{")
below = "%x"
for i in range(layers):
    print(f"""
  %g{i} = shardc.kernel({below}) : ({rows}) -> {rows} {{
  ^bb0(%a: {rows}):
    %n = shardc.neg %a : {rows}
    shardc.yield %n : {rows}
  }}
  %u{i} = shardc.kernel({below}, %g{i}, %w{i}) : ({rows}, {rows}, {weight}) -> {weight} {{
  ^bb0(%a: {rows}, %b: {rows}, %c: {weight}):
    %d = shardc.dot_general %a, %b contracting = [0] x [0] : {rows}, {rows} -> {weight}
    %s = shardc.sub %c, %d : {weight}
    shardc.yield %s : {weight}
  }}""")
    below = f"%g{i}"
updated = ", ".join([below] + [f"%u{i}" for i in range(layers)])
print(f"  return {updated} : {results}\n}}\n}}")
