"""Optimizers that shardc adds to a loss function; names and defaults of optax."""

import dataclasses


def number(value):
    """A number as MLIR reads it: with a decimal point."""
    text = repr(float(value))
    mantissa, exponent, power = text.partition("e")
    return (mantissa if "." in mantissa else mantissa + ".0") + exponent + power


@dataclasses.dataclass(frozen=True)
class Optimizer:
    """The text of an optimizer's hyper-parameters in shardc.training."""

    kind: str
    arguments: dict

    def __str__(self):
        pairs = ", ".join(f"{key} = {number(value)}"
                          for key, value in self.arguments.items())
        return f"<{self.kind}, {pairs}>"


def sgd(learning_rate, momentum=None):
    """Stochastic gradient descent, with heavy-ball momentum if given."""
    if momentum is None:
        return Optimizer("sgd", {"learning_rate": learning_rate})
    return Optimizer("momentum", {"learning_rate": learning_rate,
                                  "momentum": momentum})


def adam(learning_rate, b1=0.9, b2=0.999, eps=1e-8):
    """Adam (Kingma and Ba, 2015)."""
    return Optimizer("adam", {"learning_rate": learning_rate, "b1": b1,
                              "b2": b2, "eps": eps})


def adamw(learning_rate, b1=0.9, b2=0.999, eps=1e-8, weight_decay=1e-4):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019)."""
    return Optimizer("adamw", {"learning_rate": learning_rate, "b1": b1,
                               "b2": b2, "eps": eps,
                               "weight_decay": weight_decay})
