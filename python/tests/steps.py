"""Whole train steps as people write them: (step, parameters, state, x, y)."""

import jax
import jax.numpy as jnp
import optax

import losses
import ops


def with_optax(optimizer, case):
    """A step with an optimizer of optax."""

    def build(rng):
        loss_fn, params, x, y = case(rng)

        def step(params, state, x, y):
            loss, gradients = jax.value_and_grad(loss_fn)(params, x, y)
            updates, state = optimizer.update(gradients, state, params)
            return optax.apply_updates(params, updates), state, loss

        return step, params, optimizer.init(params), x, y

    return build


def by_hand(case, rate):
    """Gradient descent without a library."""

    def build(rng):
        loss_fn, params, x, y = case(rng)

        def step(params, state, x, y):
            loss, gradients = jax.value_and_grad(loss_fn)(params, x, y)
            params = jax.tree.map(lambda p, g: p - rate * g, params, gradients)
            return params, state + 1, loss

        return step, params, jnp.zeros((), jnp.int32), x, y

    return build


MSE = losses.regression(jax.nn.gelu)
ENTROPY = losses.classifier(losses.one_hot)

CASES = {
    "step_by_hand": by_hand(losses.regression(jax.nn.relu), 0.05),
    "step_sgd": with_optax(optax.sgd(0.05), MSE),
    "step_momentum": with_optax(optax.sgd(0.05, momentum=0.9, nesterov=True), MSE),
    "step_adam": with_optax(optax.adam(1e-2), MSE),
    "step_adam_entropy": with_optax(optax.adam(1e-2), ENTROPY),
    "step_adamw_clip": with_optax(optax.chain(
        optax.clip_by_global_norm(0.5), optax.adamw(1e-2)), MSE),
    "step_rmsprop": with_optax(optax.rmsprop(1e-3), MSE),
    "step_adagrad": with_optax(optax.adagrad(1e-2), MSE),
    "step_lion": with_optax(optax.lion(1e-3), MSE),
    "step_schedule": with_optax(optax.adam(optax.linear_schedule(1e-2, 1e-3, 10)), MSE),
    "step_ops": by_hand(ops.case, 1.0),
}
