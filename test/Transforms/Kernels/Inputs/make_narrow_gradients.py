"""make_narrow_gradients.py LAYERS [ROWS COLUMNS]: prints kernels of so many narrow layers' gradients, each of 1024 rows
and 32 columns, with the updates of weights; with other rows and columns also with biases.

The factors that a gradient reads are of the layer alone, so that sums of blocks of rows are most of the memory.
"""

import sys

layers = int(sys.argv[1])
size, width = (sys.argv[2:] + ["1024", "32"])[:2]
has_biases = len(sys.argv) > 2
rows, weight, bias = f"tensor<{size}x{width}xf32>", f"tensor<{width}x{width}xf32>", f"tensor<{width}xf32>"

print("module {")
arguments = [f'%x: {rows} {{shardc.role = #shardc.input<"x">}}']
for i in range(layers):
    arguments.append(f'%w{i}: {weight} {{shardc.role = #shardc.parameter<"w{i}", constant(0.0)>}}')
    if has_biases:
        arguments.append(f'%v{i}: {bias} {{shardc.role = #shardc.parameter<"v{i}", constant(0.0)>}}')
results = ", ".join([rows] + [weight] * layers + [bias] * layers * has_biases)
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
    if has_biases:
        print(f"""
  %t{i} = shardc.kernel(%g{i}, %v{i}) : ({rows}, {bias}) -> {bias} {{
  ^bb0(%b: {rows}, %c: {bias}):
    %d = shardc.reduce sum %b dims = [0] : {rows} -> {bias}
    %s = shardc.sub %c, %d : {bias}
    shardc.yield %s : {bias}
  }}""")
    below = f"%g{i}"
updated = ", ".join([below] + [f"%u{i}" for i in range(layers)] + [f"%t{i}" for i in range(layers)] * has_biases)
print(f"  return {updated} : {results}\n}}\n}}")
