"""Makes the reference values that shardc's training is compared with.

Needs jax, optax and numpy (python3 -m venv V; V/bin/pip install jax optax
numpy). Writes one folder per case beside this file:

  model.mlir    the source module
  init.npz      initial parameters
  data.npz      the batches, in order
  final.npz     parameters after the last step
  losses.json   the loss of each step, before its update

and, of the case `prediction`, the outputs of the network instead of a training:

  model.mlir      the source module
  params.npz      parameters
  data.npz        inputs, in a number of rows that is no multiple of the batch
  prediction.npz  the outputs for all rows

The files are committed: tests need neither Python packages nor JAX.
"""

import json
import pathlib
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import optax

HERE = pathlib.Path(__file__).parent


def write_case(name, model, params, data, final, losses):
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    (folder / "model.mlir").write_text(model)
    for file, arrays in (("init", params), ("data", data), ("final", final)):
        np.savez(folder / f"{file}.npz", **{k: np.asarray(v) for k, v in arrays.items()})
    (folder / "losses.json").write_text(json.dumps([float(loss) for loss in losses]) + "\n")
    print(f"{name}: {losses[0]:.6f} -> {losses[-1]:.6f}")


def train(loss_fn, optimizer, params, data, batch, steps):
    """Runs `steps` steps over consecutive batches, from the start again at the end."""

    @jax.jit
    def step(params, state, rows):
        loss, grads = jax.value_and_grad(loss_fn)(params, rows)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    state = optimizer.init(params)
    losses = []
    per_epoch = len(data["x"]) // batch
    for i in range(steps):
        first = (i % per_epoch) * batch
        rows = {k: v[first : first + batch] for k, v in data.items()}
        params, state, loss = step(params, state, rows)
        losses.append(loss)
    return params, losses


def mlp_params(rng, layers):
    params = {}
    for i, (fan_in, out) in enumerate(zip(layers, layers[1:])):
        params[f"w{i}"] = (rng.standard_normal((fan_in, out)) * np.sqrt(2 / fan_in)).astype(np.float32)
        params[f"b{i}"] = (rng.standard_normal(out) * 0.1).astype(np.float32)
    return params


def mlp(params, x, activation=jax.nn.relu):
    count = len(params) // 2
    for i in range(count):
        x = x @ params[f"w{i}"] + params[f"b{i}"]
        if i + 1 < count:
            x = activation(x)
    return x


def mse(params, rows):
    return jnp.mean((mlp(params, rows["x"]) - rows["y"]) ** 2)


def cross_entropy(params, rows):
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(mlp(params, rows["x"]), rows["y"]))


def mlp_module(layers, batch, loss, training, dropout=0):
    """The text of an MLP with relu, as shardc-gen would write it."""
    args = [f'%x: tensor<{batch}x{layers[0]}xf32> {{shardc.role = #shardc.input<"x">}}']
    label = f"tensor<{batch}xi32>" if loss == "softmax_cross_entropy" else f"tensor<{batch}x{layers[-1]}xf32>"
    args.append(f'%y: {label} {{shardc.role = #shardc.label<"y">}}')
    body, value = [], "%x"
    for i, (fan_in, out) in enumerate(zip(layers, layers[1:])):
        args.append(f'%w{i}: tensor<{fan_in}x{out}xf32> {{shardc.role = #shardc.parameter<"w{i}", he_normal>}}')
        args.append(f'%b{i}: tensor<{out}xf32> {{shardc.role = #shardc.parameter<"b{i}", constant(0.0)>}}')
        types = f"tensor<{batch}x{fan_in}xf32>, tensor<{fan_in}x{out}xf32>, tensor<{out}xf32>"
        body.append(f"%z{i} = shardc.linear {value}, %w{i}, %b{i} : {types} -> tensor<{batch}x{out}xf32>")
        value = f"%z{i}"
        if i + 2 < len(layers):
            body.append(f"%h{i} = shardc.relu %z{i} : tensor<{batch}x{out}xf32>")
            value = f"%h{i}"
            if dropout:
                body.append(f"%d{i} = shardc.dropout %h{i} rate = {dropout} stream = {i} : tensor<{batch}x{out}xf32>")
                value = f"%d{i}"
    out = f"tensor<{batch}x{layers[-1]}xf32>" + (f", {label}" if loss == "softmax_cross_entropy" else "")
    body.append(f"%loss = shardc.{loss} {value}, %y : {out} -> tensor<f32>")
    return module(args, body, training)


def module(args, body, training):
    return (
        f"module @golden attributes {{\n    shardc.training = #shardc.training<loss = @loss, {training}>}} {{\n"
        + "  func.func @loss(\n      "
        + ",\n      ".join(args)
        + ") -> tensor<f32> {\n"
        + textwrap.indent("\n".join(body), "    ")
        + "\n    return %loss : tensor<f32>\n  }\n}\n"
    )


def notebook():
    rng = np.random.default_rng(1)
    layers, batch = [10, 32, 16, 1], 64
    x = rng.standard_normal((640, 10)).astype(np.float32)
    y = (np.sum(x**2, 1, keepdims=True) + 0.1 * rng.standard_normal((640, 1))).astype(np.float32)
    params, data = mlp_params(rng, layers), {"x": x, "y": y}
    final, losses = train(mse, optax.sgd(0.01), params, data, batch, 20)
    text = mlp_module(layers, batch, "mse", "optimizer = <sgd, learning_rate = 0.01>")
    write_case("notebook", text, params, data, final, losses)


def classifier():
    rng = np.random.default_rng(2)
    layers, batch = [20, 32, 10], 32
    x = rng.standard_normal((320, 20)).astype(np.float32)
    y = np.argmax(x @ rng.standard_normal((20, 10)), 1).astype(np.int32)
    params, data = mlp_params(rng, layers), {"x": x, "y": y}
    final, losses = train(cross_entropy, optax.adam(1e-2), params, data, batch, 20)
    text = mlp_module(layers, batch, "softmax_cross_entropy", "optimizer = <adam, learning_rate = 0.01>")
    write_case("classifier", text, params, data, final, losses)


def bf16():
    """Mixed precision as in JAX: parameters and inputs cast to bf16, the loss in f32.

    Inputs vary by a quarter around 16, where bf16 has steps of an eighth: with them
    in f32 the losses are others.
    """
    rng = np.random.default_rng(5)
    layers, batch = [20, 48, 48, 10], 32
    noise = rng.standard_normal((320, 20))
    x = (16 + noise / 4).astype(np.float32)
    y = np.argmax(noise @ rng.standard_normal((20, 10)), 1).astype(np.int32)
    params, data = mlp_params(rng, layers), {"x": x, "y": y}
    params["w0"] = 4 * (params["w0"] - params["w0"].mean(0))

    def loss(params, rows):
        half = {k: v.astype(jnp.bfloat16) for k, v in params.items()}
        logits = mlp(half, rows["x"].astype(jnp.bfloat16)).astype(jnp.float32)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, rows["y"]))

    optimizer = optax.sgd(0.0001, momentum=0.9)
    final, losses = train(loss, optimizer, params, data, batch, 20)
    text = mlp_module(
        layers, batch, "softmax_cross_entropy", "optimizer = <momentum, learning_rate = 0.0001, momentum = 0.9>"
    )
    write_case("bf16", text, params, data, final, losses)


def optimizers():
    decay = optax.add_decayed_weights(0.01)
    warmup = optax.linear_schedule(0.0, 0.05, 8)
    cosine = optax.warmup_cosine_decay_schedule(0.0, 0.05, 4, 16, 0.005)
    cases = {
        "sgd_decay": (optax.chain(decay, optax.sgd(0.02)), "optimizer = <sgd, learning_rate = 0.02, weight_decay = 0.01>"),
        "momentum": (optax.sgd(0.01, momentum=0.9), "optimizer = <momentum, learning_rate = 0.01, momentum = 0.9>"),
        "adam": (optax.adam(0.01), "optimizer = <adam, learning_rate = 0.01>"),
        "adamw": (
            optax.adamw(0.01, b1=0.8, b2=0.95, weight_decay=0.1),
            "optimizer = <adamw, learning_rate = 0.01, b1 = 0.8, b2 = 0.95, weight_decay = 0.1>",
        ),
        "clip": (
            optax.chain(optax.clip_by_global_norm(0.5), optax.sgd(0.05)),
            "optimizer = <sgd, learning_rate = 0.05>, clip_norm = 0.5",
        ),
        "warmup": (
            optax.sgd(warmup),
            "optimizer = <sgd, learning_rate = 0.05>, schedule = <linear_warmup, warmup_steps = 8.0>",
        ),
        "cosine": (
            optax.chain(optax.clip_by_global_norm(1.0), optax.adam(cosine)),
            "optimizer = <adam, learning_rate = 0.05>, clip_norm = 1.0, "
            "schedule = <cosine, warmup_steps = 4.0, decay_steps = 16.0, alpha = 0.1>",
        ),
    }
    for name, (optimizer, training) in cases.items():
        rng = np.random.default_rng(3)
        layers, batch = [6, 8, 3], 16
        data = {
            "x": rng.standard_normal((64, 6)).astype(np.float32),
            "y": rng.standard_normal((64, 3)).astype(np.float32),
        }
        params = mlp_params(rng, layers)
        final, losses = train(mse, optimizer, params, data, batch, 20)
        write_case(name, mlp_module(layers, batch, "mse", training), params, data, final, losses)


def op_gradients():
    """One step of gradient descent at rate 1, in which each op has a parameter of
    its own: it moves by the gradient of that op. x weighs the elements."""
    rng = np.random.default_rng(4)
    full = "tensor<4x6xf32>"
    unary = {
        "neg": jnp.negative, "abs": jnp.abs, "sign": jnp.sign, "exp": jnp.exp, "expm1": jnp.expm1,
        "log": jnp.log, "log1p": jnp.log1p, "sqrt": jnp.sqrt, "rsqrt": jax.lax.rsqrt, "tanh": jnp.tanh,
        "erf": jax.scipy.special.erf, "cos": jnp.cos, "sin": jnp.sin, "stop_gradient": jax.lax.stop_gradient,
        "relu": jax.nn.relu, "sigmoid": jax.nn.sigmoid, "silu": jax.nn.silu,
        "gelu": lambda v: jax.nn.gelu(v, approximate=False), "gelu_tanh": jax.nn.gelu,
    }  # fmt: skip
    positive = {"log", "log1p", "sqrt", "rsqrt"}
    binary = {
        "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.divide,
        "max": jnp.maximum, "min": jnp.minimum,
    }  # fmt: skip

    args = [f'%x: {full} {{shardc.role = #shardc.input<"x">}}', '%y: tensor<4xi32> {shardc.role = #shardc.label<"y">}']
    params, body, terms, functions = {}, [], [], []

    def parameter(name, shape, low=-2.0, high=2.0):
        params[name] = rng.uniform(low, high, shape).astype(np.float32)
        text = "tensor<" + "".join(f"{size}x" for size in shape) + "f32>"
        args.append(f'%{name}: {text} {{shardc.role = #shardc.parameter<"{name}", normal(1.0)>}}')

    def weigh(name, value, function):
        """Adds sum(value * x) to the loss; `function` maps parameters to the value."""
        body.append(f"%{name}_x = shardc.mul {value}, %x : {full}")
        body.append(f"%{name}_term = shardc.reduce sum %{name}_x dims = [0, 1] : {full} -> tensor<f32>")
        terms.append(f"%{name}_term")
        functions.append(lambda p, rows: jnp.sum(function(p) * rows["x"]))

    for name, function in unary.items():
        parameter(f"p_{name}", (4, 6), *((0.3, 3.0) if name in positive else (-2.0, 2.0)))
        op = "gelu tanh" if name == "gelu_tanh" else name
        body.append(f"%v_{name} = shardc.{op} %p_{name} : {full}")
        if name in ("sign", "stop_gradient"):
            # No gradient flows through these: it takes a second way.
            body.append(f"%w_{name} = shardc.mul %v_{name}, %p_{name} : {full}")
            weigh(f"v_{name}", f"%w_{name}", lambda p, f=function, n=name: f(p[f"p_{n}"]) * p[f"p_{n}"])
            continue
        weigh(f"v_{name}", f"%v_{name}", lambda p, f=function, n=name: f(p[f"p_{n}"]))
    for name, function in binary.items():
        parameter(f"a_{name}", (4, 6), 0.5, 2.0)
        parameter(f"b_{name}", (4, 6), 0.5, 2.0)
        body.append(f"%v_{name} = shardc.{name} %a_{name}, %b_{name} : {full}")
        weigh(f"v_{name}", f"%v_{name}", lambda p, f=function, n=name: f(p[f"a_{n}"], p[f"b_{n}"]))

    parameter("s_a", (4, 6))
    parameter("s_b", (4, 6))
    body.append(f"%s_p = shardc.compare gt %s_a, %s_b : {full} -> tensor<4x6xi1>")
    body.append(f"%s_v = shardc.select %s_p, %s_a, %s_b : tensor<4x6xi1>, {full}")
    weigh("s_v", "%s_v", lambda p: jnp.where(p["s_a"] > p["s_b"], p["s_a"], p["s_b"]))

    parameter("d_a", (4, 5))
    parameter("d_b", (6, 5))
    body.append(f"%d_v = shardc.dot_general %d_a, %d_b contracting = [1] x [1] : tensor<4x5xf32>, tensor<6x5xf32> -> {full}")
    weigh("d_v", "%d_v", lambda p: p["d_a"] @ p["d_b"].T)

    parameter("g_a", (2, 2, 5))
    parameter("g_b", (2, 5, 6))
    body.append(
        "%g_d = shardc.dot_general %g_a, %g_b batching = [0] x [0] contracting = [2] x [1] "
        ": tensor<2x2x5xf32>, tensor<2x5x6xf32> -> tensor<2x2x6xf32>"
    )
    body.append(f"%g_v = shardc.reshape %g_d : tensor<2x2x6xf32> -> {full}")
    weigh("g_v", "%g_v", lambda p: jnp.einsum("bik,bkj->bij", p["g_a"], p["g_b"]).reshape(4, 6))

    parameter("t_a", (6, 4))
    body.append(f"%t_v = shardc.transpose %t_a permutation = [1, 0] : tensor<6x4xf32> -> {full}")
    weigh("t_v", "%t_v", lambda p: p["t_a"].T)

    parameter("c_a", (6,))
    body.append(f"%c_v = shardc.broadcast %c_a dims = [1] : tensor<6xf32> -> {full}")
    weigh("c_v", "%c_v", lambda p: jnp.broadcast_to(p["c_a"], (4, 6)))

    parameter("m_a", (4, 6, 3))
    body.append(f"%m_v = shardc.reduce max %m_a dims = [2] : tensor<4x6x3xf32> -> {full}")
    weigh("m_v", "%m_v", lambda p: jnp.max(p["m_a"], 2))
    parameter("r_a", (4, 3, 6))
    body.append(f"%r_v = shardc.reduce sum %r_a dims = [1] : tensor<4x3x6xf32> -> {full}")
    weigh("r_v", "%r_v", lambda p: jnp.sum(p["r_a"], 1))

    parameter("l_w", (6, 6))
    parameter("l_b", (6,))
    body.append(f"%l_v = shardc.linear %x, %l_w, %l_b : {full}, tensor<6x6xf32>, tensor<6xf32> -> {full}")
    terms.append("%l_term")
    body.append("%l_x = shardc.mul %l_v, %x : " + full)
    body.append(f"%l_term = shardc.reduce sum %l_x dims = [0, 1] : {full} -> tensor<f32>")
    functions.append(lambda p, rows: jnp.sum((rows["x"] @ p["l_w"] + p["l_b"]) * rows["x"]))

    parameter("n_a", (4, 6))
    parameter("n_s", (6,))
    parameter("n_b", (6,))
    body.append(f"%n_v = shardc.layer_norm %n_a, %n_s, %n_b epsilon = 1.0e-6 : {full}, tensor<6xf32>")

    def layer_norm(p):
        mean = jnp.mean(p["n_a"], 1, keepdims=True)
        variance = jnp.mean((p["n_a"] - mean) ** 2, 1, keepdims=True)
        return (p["n_a"] - mean) / jnp.sqrt(variance + 1e-6) * p["n_s"] + p["n_b"]

    weigh("n_v", "%n_v", layer_norm)

    parameter("e_a", (4, 6))
    body.append(f"%e_term = shardc.softmax_cross_entropy %e_a, %y : {full}, tensor<4xi32> -> tensor<f32>")
    terms.append("%e_term")
    functions.append(lambda p, rows: jnp.mean(optax.softmax_cross_entropy_with_integer_labels(p["e_a"], rows["y"])))
    parameter("q_a", (4, 6))
    body.append(f"%q_term = shardc.mse %q_a, %x : {full} -> tensor<f32>")
    terms.append("%q_term")
    functions.append(lambda p, rows: jnp.mean((p["q_a"] - rows["x"]) ** 2))

    # A value used twice: its gradients are summed.
    parameter("u_a", (4, 6))
    body.append(f"%u_t = shardc.tanh %u_a : {full}")
    body.append(f"%u_v = shardc.mul %u_t, %u_a : {full}")
    weigh("u_v", "%u_v", lambda p: jnp.tanh(p["u_a"]) * p["u_a"])

    value = terms[0]
    for i, term in enumerate(terms[1:]):
        name = "%loss" if i + 2 == len(terms) else f"%sum{i}"
        body.append(f"{name} = shardc.add {value}, {term} : tensor<f32>")
        value = name

    data = {
        "x": rng.uniform(0.5, 1.5, (4, 6)).astype(np.float32),
        "y": rng.integers(0, 6, 4).astype(np.int32),
    }
    loss = lambda p, rows: sum(f(p, rows) for f in functions)
    final, losses = train(loss, optax.sgd(1.0), params, data, 4, 1)
    text = module(args, body, "optimizer = <sgd, learning_rate = 1.0>")
    write_case("op_gradients", text, params, data, final, losses)


def prediction():
    """The logits of a classifier that was trained with dropout, which a prediction leaves out."""
    rng = np.random.default_rng(6)
    layers, batch, rate = [20, 48, 33, 17, 10], 32, 0.3
    x = rng.standard_normal((320, 20)).astype(np.float32)
    y = np.argmax(x @ rng.standard_normal((20, 10)), 1).astype(np.int32)

    def loss(params, rows):
        key = jax.random.fold_in(jax.random.key(0), rows["y"][0])

        def dropped(value):
            kept = jax.random.bernoulli(key, 1 - rate, value.shape)
            return jnp.where(kept, jax.nn.relu(value) / (1 - rate), 0)

        logits = mlp(params, rows["x"], dropped)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, rows["y"]))

    params, _ = train(loss, optax.adam(1e-2), mlp_params(rng, layers), {"x": x, "y": y}, batch, 60)
    new = rng.standard_normal((77, 20)).astype(np.float32)
    folder = HERE / "prediction"
    folder.mkdir(exist_ok=True)
    text = mlp_module(layers, batch, "softmax_cross_entropy", "optimizer = <adam, learning_rate = 0.01>", rate)
    (folder / "model.mlir").write_text(text)
    np.savez(folder / "params.npz", **{name: np.asarray(value) for name, value in params.items()})
    np.savez(folder / "data.npz", x=new)
    np.savez(folder / "prediction.npz", prediction=np.asarray(jax.jit(mlp)(params, new)))


if __name__ == "__main__":
    jax.config.update("jax_default_matmul_precision", "highest")
    notebook()
    classifier()
    bf16()
    optimizers()
    op_gradients()
    prediction()
