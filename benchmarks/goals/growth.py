"""Time per useful FLOP of models that grow, beside that of the smallest."""

import workloads as w

# What grows, and its models from the smallest to the largest: the factor by which
# each is larger, the model and its layout. Each device keeps its rows.
GROWTH = {
    "layers of 64, one device": [(n // 96, w.Mlp((64,) * (n + 1), 256), w.ONE) for n in (96, 192, 384)],
    "layers of 64, DP 8": [(n // 96, w.Mlp((64,) * (n + 1), 256), w.DP8) for n in (96, 192, 384)],
    "devices of 128 rows, 10-32-16-1": [
        (n // 8, w.Mlp(w.NOTEBOOK.layers, 128 * n), w.Layout(f"DP {n}", "dp", f"data={n}")) for n in (8, 32, 128, 256)
    ],
    "devices of 16 rows, 784-1024-1024-10": [
        (n // 8, w.Mlp(w.IMAGES.layers, 16 * n, w.IMAGES.loss), w.Layout(f"DP {n}", "dp", f"data={n}")) for n in (8, 32, 128, 256)
    ],
    "rows, 10-32-16-1, DP 8": [(n, w.Mlp(w.NOTEBOOK.layers, 1024 * n), w.DP8) for n in (1, 4, 16)],
    "rows, 784-1024-1024-10, DP 8": [(n, w.Mlp(w.IMAGES.layers, 128 * n, w.IMAGES.loss), w.DP8) for n in (1, 4, 16)],
    "microbatches of 128 rows, 784-1024-1024-10": [
        (n, w.Mlp(w.IMAGES.layers, 128 * n, w.IMAGES.loss), w.Layout(f"{n} microbatches", microbatches=n)) for n in (1, 4, 16, 64)
    ],
}


def growth(bench):
    """Each model beside the smallest of its kind."""
    for name, models in GROWTH.items():
        for factor, mlp, layout in models:
            bench.enter(str(factor), mlp, layout)
        result = bench.hold()
        (_, smallest, _), *larger = models
        for factor, mlp, _ in larger:
            line = bench.line(result, f"{factor} x {name}", mlp, str(factor), "the fewest", "1", 1.15, False)
            line.per_flop(mlp.flops(), smallest.flops())
            line.series, line.factor = name, factor
            yield line
