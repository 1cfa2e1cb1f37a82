"""kill_and_resume.py WHOLE PART KILLS -- COMMAND...: trains with kills, and compares.

Runs the command with --save-params=WHOLE.npz and --metrics=WHOLE.jsonl. Then runs it again
and again with files of PART, --checkpoint-dir=PART.checkpoints and --resume=if-any, killed
(SIGKILL) at random moments KILLS times, and once to its end. Fails unless the parameters
have the same bytes and every step the same loss, once.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import time

whole, part, kills = sys.argv[1], sys.argv[2], int(sys.argv[3])
command = sys.argv[5:]


def run(name, *flags):
    # The whole one writes no checkpoints.
    own = [flag for flag in command if flags or not flag.startswith(("--checkpoint", "--keep"))]
    arguments = own + [f"--save-params={name}.npz", f"--metrics={name}.jsonl", *flags]
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL)


def losses(name):
    return [(line["step"], line["loss"]) for line in map(json.loads, open(name + ".jsonl"))]


def lines(name):
    return open(name, "rb").read().count(b"\n") if os.path.exists(name) else 0


shutil.rmtree(part + ".checkpoints", ignore_errors=True)
for name in (part + ".jsonl", part + ".npz"):
    if os.path.exists(name):
        os.remove(name)
assert run(whole).wait() == 0
steps = len(losses(whole))
random.seed(1)
resume = [f"--checkpoint-dir={part}.checkpoints", "--resume=if-any"]
for number in range(kills):
    # The kills are spread over the training, each some time after a step.
    training = run(part, *resume)
    while lines(part + ".jsonl") < steps * (number + 0.5) / kills and training.poll() is None:
        time.sleep(0.001)
    time.sleep(random.random() / 100)
    training.kill()
    training.wait()
assert run(part, *resume).wait() == 0
assert losses(part) == losses(whole), "the losses differ"
assert open(part + ".npz", "rb").read() == open(whole + ".npz", "rb").read(), "parameters differ"
print("the same bits after", kills, "kills")
