"""Loss functions as people write them, with the parameters and data they need.

Each function of CASES gives (loss, parameters, x, y) for a generator of random
numbers; x and y have ROWS rows."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

ROWS, BATCH = 96, 32


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def dense(rng, fan_in, out):
    return {"w": normal(rng, fan_in, out) * np.float32(fan_in ** -0.5),
            "b": normal(rng, out) * np.float32(0.1)}


def mlp_parameters(rng, sizes):
    return {f"layer{i}": dense(rng, *pair)
            for i, pair in enumerate(zip(sizes, sizes[1:]))}


def mlp(params, x, activation):
    *hidden, last = params.values()
    for layer in hidden:
        x = activation(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def regression(activation, sizes=(16, 32, 16, 8)):
    """The mean squared error of an MLP with `activation`."""

    def case(rng):
        def loss(params, x, y):
            return jnp.mean((mlp(params, x, activation) - y) ** 2)

        return (loss, mlp_parameters(rng, sizes), normal(rng, ROWS, sizes[0]),
                normal(rng, ROWS, sizes[-1]))

    return case


def classifier(loss_of_logits, activation=jax.nn.relu, classes=8):
    """A classifier with integer labels."""

    def case(rng):
        def loss(params, x, y):
            return loss_of_logits(mlp(params, x, activation), y)

        return (loss, mlp_parameters(rng, (16, 32, classes)),
                normal(rng, ROWS, 16),
                rng.integers(0, classes, ROWS).astype(np.int32))

    return case


def targets(loss_of_output, make_targets, outputs=8):
    """An MLP whose targets are floating-point numbers."""

    def case(rng):
        def loss(params, x, y):
            return loss_of_output(mlp(params, x, jnp.tanh), y)

        return (loss, mlp_parameters(rng, (16, 32, outputs)),
                normal(rng, ROWS, 16),
                make_targets(rng, (ROWS, outputs)).astype(np.float32))

    return case


def bits(rng, shape):
    return rng.integers(0, 2, shape)


def distribution(rng, shape):
    return rng.dirichlet(np.ones(shape[1]), shape[0])


def picked(logits, y):
    """-log p(y), by take_along_axis."""
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1))


def indexed(logits, y):
    """-log p(y), by an index for each row."""
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(y.shape[0]), y])


def one_hot(logits, y):
    return -jnp.mean(jnp.sum(jax.nn.one_hot(y, logits.shape[-1]) * jax.nn.log_softmax(logits), -1))


def optax_integer(logits, y):
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def smoothed(logits, y):
    labels = optax.smooth_labels(jax.nn.one_hot(y, logits.shape[-1]), 0.1)
    return optax.softmax_cross_entropy(logits, labels).mean()


def focal(logits, y):
    p = jax.nn.softmax(logits)
    q = jnp.sum(p * jax.nn.one_hot(y, logits.shape[-1]), -1)
    return jnp.mean((1 - q) ** 2 * -jnp.log(q + 1e-7))


def layer_norm(x, scale, bias):
    mean = jnp.mean(x, -1, keepdims=True)
    variance = jnp.var(x, -1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-6) * scale + bias


def residual(rng):
    """Two blocks of layer norm, MLP and residual connection."""
    def block():
        return {"scale": np.ones(16, np.float32), "bias": np.zeros(16, np.float32),
                "up": dense(rng, 16, 32), "down": dense(rng, 32, 16)}

    def loss(params, x, y):
        for layer in params["blocks"]:
            h = layer_norm(x, layer["scale"], layer["bias"])
            h = jax.nn.gelu(h @ layer["up"]["w"] + layer["up"]["b"])
            x = x + h @ layer["down"]["w"] + layer["down"]["b"]
        return jnp.mean((x @ params["head"]["w"] + params["head"]["b"] - y) ** 2)

    params = {"blocks": [block(), block()], "head": dense(rng, 16, 8)}
    return loss, params, normal(rng, ROWS, 16), normal(rng, ROWS, 8)


def rms_norm_glu(rng):
    def loss(params, x, y):
        h = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * params["scale"]
        h = jax.nn.silu(h @ params["gate"]) * (h @ params["up"])
        return jnp.mean(jnp.square(h @ params["down"] - y))

    params = {"scale": np.ones(16, np.float32), "gate": normal(rng, 16, 32) / 4,
              "up": normal(rng, 16, 32) / 4, "down": normal(rng, 32, 8) / 6}
    return loss, params, normal(rng, ROWS, 16), normal(rng, ROWS, 8)


def embedding(rng):
    """Words looked up in a table, their mean into an MLP."""
    def loss(params, x, y):
        h = jnp.mean(params["table"][x], axis=1)
        return optax_integer(mlp(params["mlp"], h, jax.nn.relu), y)

    params = {"table": normal(rng, 24, 16), "mlp": mlp_parameters(rng, (16, 32, 8))}
    return (loss, params, rng.integers(0, 24, (ROWS, 4)).astype(np.int32),
            rng.integers(0, 8, ROWS).astype(np.int32))


def scanned(rng):
    """lax.scan over stacked layers."""
    def loss(params, x, y):
        def layer(h, p):
            return jnp.tanh(h @ p["w"] + p["b"]), None

        h, _ = jax.lax.scan(layer, x, params["stack"])
        return jnp.mean((h @ params["head"]["w"] + params["head"]["b"] - y) ** 2)

    params = {"stack": {"w": normal(rng, 3, 16, 16) / 4, "b": normal(rng, 3, 16) / 8},
              "head": dense(rng, 16, 8)}
    return loss, params, normal(rng, ROWS, 16), normal(rng, ROWS, 8)


def checkpointed(rng):
    loss, *rest = regression(jnp.tanh)(rng)
    return (jax.checkpoint(loss), *rest)


def mapped(rng):
    """The loss of one example, with vmap."""
    def one(params, x, y):
        return jnp.sum((mlp(params, x, jax.nn.relu) - y) ** 2)

    def loss(params, x, y):
        return jnp.mean(jax.vmap(one, in_axes=(None, 0, 0))(params, x, y))

    return (loss, mlp_parameters(rng, (16, 32, 8)), normal(rng, ROWS, 16),
            normal(rng, ROWS, 8))


def heads(rng):
    """Products with batching dimensions: einsum over heads."""
    def loss(params, x, y):
        h = jnp.einsum("bi,hij->bhj", x, params["in"])
        scores = jnp.einsum("bhj,bgj->bhg", h, h) / 4
        h = jnp.einsum("bhg,bgj->bhj", jax.nn.softmax(scores), h)
        return jnp.mean((jnp.einsum("bhj,hjo->bo", h, params["out"]) - y) ** 2)

    params = {"in": normal(rng, 4, 16, 8) / 4, "out": normal(rng, 4, 8, 8) / 6}
    return loss, params, normal(rng, ROWS, 16), normal(rng, ROWS, 8)


def stopped(rng):
    """A target that takes no part in the gradient."""
    def loss(params, x, y):
        out = mlp(params, x, jnp.tanh)
        target = 0.9 * y + 0.1 * jax.lax.stop_gradient(out)
        return jnp.mean((out - target) ** 2)

    return (loss, mlp_parameters(rng, (16, 32, 8)), normal(rng, ROWS, 16),
            normal(rng, ROWS, 8))


def decayed(rng):
    """L2 regularisation over all parameters."""
    loss, *rest = regression(jax.nn.relu)(rng)

    def regularised(params, x, y):
        squares = sum(jnp.sum(p ** 2) for p in jax.tree.leaves(params))
        return loss(params, x, y) + 1e-3 * squares

    return (regularised, *rest)


def two_inputs(rng):
    """A dictionary of inputs."""
    def loss(params, x, y):
        h = jnp.tanh(x["left"] @ params["left"] + x["right"] @ params["right"])
        return jnp.mean(jnp.abs(h @ params["out"] - y))

    params = {"left": normal(rng, 8, 16) / 3, "right": normal(rng, 16, 16) / 4,
              "out": normal(rng, 16, 8) / 4}
    x = {"left": normal(rng, ROWS, 8), "right": normal(rng, ROWS, 16)}
    return loss, params, x, normal(rng, ROWS, 8)


def mixed(rng):
    """Products of bfloat16, parameters of float32."""
    def loss(params, x, y):
        *hidden, last = params.values()
        h = x.astype(jnp.bfloat16)
        for layer in hidden:
            h = jax.nn.relu(h @ layer["w"].astype(jnp.bfloat16) + layer["b"].astype(jnp.bfloat16))
        out = h @ last["w"].astype(jnp.bfloat16)
        return jnp.mean((out.astype(jnp.float32) + last["b"] - y) ** 2)

    return (loss, mlp_parameters(rng, (16, 32, 8)), normal(rng, ROWS, 16),
            normal(rng, ROWS, 8))


def cosine(output, y):
    return jnp.mean(optax.cosine_distance(output, y, epsilon=1e-6))


CASES = {
    "mse_relu": regression(jax.nn.relu),
    "mse_tanh": regression(jnp.tanh),
    "mse_gelu": regression(jax.nn.gelu),
    "mse_gelu_exact": regression(lambda x: jax.nn.gelu(x, approximate=False)),
    "mse_silu": regression(jax.nn.silu),
    "mse_sigmoid": regression(jax.nn.sigmoid),
    "mse_softplus": regression(jax.nn.softplus),
    "mse_elu": regression(jax.nn.elu),
    "mse_selu": regression(jax.nn.selu),
    "mse_leaky_relu": regression(jax.nn.leaky_relu),
    "mse_relu6": regression(jax.nn.relu6),
    "mse_hard_tanh": regression(jax.nn.hard_tanh),
    "mse_mish": regression(jax.nn.mish),
    "mse_log_sigmoid": regression(jax.nn.log_sigmoid),
    "mse_soft_sign": regression(jax.nn.soft_sign),
    "mse_sin": regression(jnp.sin),
    "mse_decayed": decayed,
    "cross_entropy_picked": classifier(picked),
    "cross_entropy_indexed": classifier(indexed),
    "cross_entropy_one_hot": classifier(one_hot),
    "cross_entropy_optax": classifier(optax_integer),
    "cross_entropy_smoothed": classifier(smoothed),
    "focal": classifier(focal),
    "cross_entropy_dense": targets(
        lambda o, y: optax.softmax_cross_entropy(o, y).mean(), distribution),
    "kl_divergence": targets(
        lambda o, y: optax.kl_divergence(jax.nn.log_softmax(o), y).mean(), distribution),
    "binary_cross_entropy": targets(
        lambda o, y: optax.sigmoid_binary_cross_entropy(o, y).mean(), bits),
    "hinge": targets(lambda o, y: jnp.mean(jnp.maximum(0, 1 - o * (2 * y - 1))), bits),
    "huber": targets(lambda o, y: optax.huber_loss(o, y, delta=0.5).mean(),
                     lambda rng, shape: rng.standard_normal(shape)),
    "log_cosh": targets(lambda o, y: optax.log_cosh(o, y).mean(),
                        lambda rng, shape: rng.standard_normal(shape)),
    "cosine_distance": targets(cosine, lambda rng, shape: rng.standard_normal(shape)),
    "residual": residual,
    "rms_norm_glu": rms_norm_glu,
    "embedding": embedding,
    "scanned": scanned,
    "checkpointed": checkpointed,
    "mapped": mapped,
    "heads": heads,
    "stopped": stopped,
    "two_inputs": two_inputs,
    "mixed": mixed,
}
