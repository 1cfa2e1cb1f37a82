"""Checkpoints of other libraries, for benchmarks/goals.

Run as checkpoint_peers.py orbax|torch FOLDER SIZES by a Python that has the library.
The state is that of an MLP with layers of these sizes and AdamW: weights and biases, two
moments of each, a step. One request per line of standard input, answered by one line, a
JSON object with "seconds" or "error":

  stall state      what an asynchronous checkpoint keeps its caller waiting
  write state      the same checkpoint, from its begin until it is written
  load cold|warm   the latest one, with or without its files in the page cache

torch flushes its files (sync_files), Orbax has no such option.
"""

import json
import os
import shutil
import sys
import time

import numpy as np


def make_state(sizes, put):
    shapes = {}
    for i, (rows, columns) in enumerate(zip(sizes, sizes[1:])):
        shapes[f"w{i}"], shapes[f"b{i}"] = (rows, columns), (columns,)
    random = np.random.default_rng(0)
    return {kind + name: put(random.random(shape, np.float32)) for kind in ("", "m_", "v_") for name, shape in shapes.items()} | {
        "step": put(np.ones((), np.int32))}  # fmt: skip


class Orbax:
    def __init__(self, sizes):
        import jax
        import orbax.checkpoint as ocp

        self.jax, self.ocp = jax, ocp
        self.state = make_state(sizes, jax.device_put)
        self.target = jax.tree.map(ocp.utils.to_shape_dtype_struct, self.state)
        self.checkpointer = ocp.StandardCheckpointer()

    def save(self, path):
        self.checkpointer.save(path, self.state)
        return self.checkpointer.wait_until_finished

    def load(self, path):
        self.jax.block_until_ready(self.checkpointer.restore(path, self.target))


class Torch:
    def __init__(self, sizes):
        import torch
        import torch.distributed.checkpoint as dcp

        self.dcp = dcp
        self.state = make_state(sizes, torch.from_numpy)

    def save(self, path):
        writer = self.dcp.FileSystemWriter(path, sync_files=True)
        future = self.dcp.async_save(self.state, storage_writer=writer, no_dist=True)
        return future.result

    def load(self, path):
        self.dcp.load(self.state, checkpoint_id=path, no_dist=True)


def files(folder):
    for place, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(place, name)


def cool(folder):
    for path in files(folder):
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)  # only clean pages are dropped
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def warm(folder):
    for path in files(folder):
        with open(path, "rb") as file:
            while file.read(1 << 20):
                pass


class Peer:
    def __init__(self, library, folder):
        self.library, self.folder, self.count = library, folder, 0

    def path(self):
        return os.path.join(self.folder, str(self.count))

    def time(self, verb, how):
        if verb == "load":
            (cool if how == "cold" else warm)(self.folder)
            start = time.perf_counter()
            self.library.load(self.path())
            return time.perf_counter() - start
        shutil.rmtree(self.path(), ignore_errors=True)
        self.count += 1
        start = time.perf_counter()
        wait = self.library.save(self.path())
        stall = time.perf_counter() - start
        wait()
        return stall if verb == "stall" else time.perf_counter() - start


def main():
    sizes = [int(size) for size in sys.argv[3].split(",")]
    peer = None
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    for line in sys.stdin:
        try:
            if not peer:
                peer = Peer({"orbax": Orbax, "torch": Torch}[sys.argv[1]](sizes), sys.argv[2])
            answer = {"seconds": peer.time(*line.split()), "steps": 1}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        os.write(answers, (json.dumps(answer) + "\n").encode())


if __name__ == "__main__":
    main()
