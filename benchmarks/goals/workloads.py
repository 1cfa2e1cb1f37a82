"""The models that are measured, as plans for shardc and as requests to JAX."""

import json
import os
import subprocess
from dataclasses import dataclass

from contest import Failure


@dataclass(frozen=True)
class Mlp:
    layers: tuple
    batch: int
    loss: str = "mse"
    optimizer: str = "sgd"

    def weights(self):
        return sum(a * b for a, b in zip(self.layers, self.layers[1:]))

    def flops(self):
        """Of the GEMMs of a step: none for the gradient of the input."""
        return 6 * self.batch * self.weights() - 2 * self.batch * self.layers[0] * self.layers[1]

    def flops_with_evaluation(self, rows):
        """The same with a share of evaluating `rows["test"]` rows after each epoch of `rows["train"]`."""
        return self.flops() + 2 * rows["test"] * self.weights() / (rows["train"] // self.batch)


@dataclass(frozen=True)
class Layout:
    """A way to spread a model over devices."""

    name: str
    strategy: str = "none"
    mesh: str = ""
    microbatches: int = 1

    def devices(self):
        count = 1
        for axis in self.mesh.split(",") if self.mesh else []:
            count *= int(axis.split("=")[1])
        return count

    def axes(self):
        return {name: int(size) for name, size in (axis.split("=") for axis in self.mesh.split(",") if axis)}


ONE = Layout("one device")
DP2, DP4, DP8 = (Layout(f"DP {n}", "dp", f"data={n}") for n in (2, 4, 8))
FSDP8 = Layout("FSDP 2x4", "fsdp+tp", "data=2,model=4")
TP8 = Layout("TP 8", "tp", "model=8")
ONE_IN_PARTS = Layout("one device, 8 microbatches", microbatches=8)
PP2, PP4 = (Layout(f"{n} stages, 8 microbatches", "pp", f"stage={n}", 8) for n in (2, 4))

NOTEBOOK = Mlp((10, 32, 16, 1), 1024)
IMAGES = Mlp((784, 1024, 1024, 10), 128, "softmax_cross_entropy")
WIDE = Mlp((1024, 4096, 1024), 1024)
DIGITS = Mlp((64, 128, 64, 10), 256, "softmax_cross_entropy", "adam")
DIGITS_ROWS = {"train": 1437, "test": 360}
# One parameter bucket of 16 MiB.
BUCKET = Mlp((1024, 2048, 1024), 8, optimizer="adamw")
# As many in 96 weights, and 96 biases.
TENSORS = Mlp((209,) * 97, 8, optimizer="adamw")
# 1 GiB of parameters and states.
STATE = Mlp((4096, 4096, 4096, 4096, 4096, 4096, 1365), 8, optimizer="adamw")
NOTEBOOK_NAME, IMAGES_NAME, WIDE_NAME = "10-32-16-1, batch 1024", "784-1024-1024-10, batch 128", "1024-4096-1024, batch 1024"


class Compiler:
    """Makes model and plan files in `folder` with the programs in `bin`."""

    def __init__(self, bin_folder, folder):
        self.bin, self.folder, self.count = bin_folder, folder, 0

    def tool(self, name):
        return os.path.join(self.bin, name)

    def run(self, name, *arguments):
        command = [self.tool(name), *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise Failure(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
        return done.stdout

    def model(self, mlp, layout, flags=()):
        self.count += 1
        path = os.path.join(self.folder, f"{self.count}.mlir")
        self.run("shardc-gen", f"--layers={','.join(map(str, mlp.layers))}", f"--loss={mlp.loss}",
                 f"--optimizer={mlp.optimizer}", f"--batch-size={mlp.batch}", "--learning-rate=0.0001",
                 f"--strategy={layout.strategy}", f"--mesh={layout.mesh or 'data=1'}",
                 f"--microbatches={layout.microbatches}", *flags, "-o", path)  # fmt: skip
        return path

    def plan(self, mlp, layout, arguments=(), model_flags=()):
        model = self.model(mlp, layout, model_flags)
        plan = model.replace(".mlir", ".shardc")
        self.run("shardc-compile", model, *arguments, "-o", plan)
        return plan

    def report(self, mlp, layout, machine):
        """What the compiler says of a plan for `machine`."""
        return json.loads(self.run("shardc-compile", self.model(mlp, layout), "--json", f"--machine={machine}", "--partition=follow"))

    def measure_machine(self, path):
        self.run("shardc-run", f"--measure-machine={path}")


def jax_request(name, mlp, layout, scan):
    """The line that makes JAX prepare the same model."""
    model = {"layers": mlp.layers, "loss": mlp.loss, "optimizer": mlp.optimizer, "batch": mlp.batch,
             "strategy": layout.strategy, "mesh": layout.axes(), "scan": scan}  # fmt: skip
    return f"model {name} {json.dumps(model)}"
