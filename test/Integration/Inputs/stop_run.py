"""stop_run.py SIGNAL CODE PATH -- COMMAND...: sends a signal to a training.

Starts the command with --save-params=PATH.npz, --metrics=PATH.jsonl and a line
every 100 steps, sends the signal after the first of them, or closes its output if
that is PIPE, and prints its output on both streams. Fails if it does not end with
the code, or did not write the metrics of every step.
"""

import json
import os
import signal
import subprocess
import sys

name, code, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]


def stop_at_signals():
    """The signals of a command in the foreground of a shell: Python ignores SIGPIPE, and
    whatever started this may ignore SIGINT, as shells do in the background."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(each, signal.SIG_DFL)


command = sys.argv[5:] + [f"--save-params={path}.npz", f"--metrics={path}.jsonl", "--log-every=100"]
if os.path.exists(path + ".npz"):
    os.remove(path + ".npz")
as_json = "--json" in command
run = subprocess.Popen(
    command,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT if as_json else subprocess.PIPE,
    text=True,
    preexec_fn=stop_at_signals,
)
said = ""
for line in run.stdout:
    said += line
    if line.startswith("step "):
        break
if name == "PIPE":
    run.stdout.close()
    said += run.stderr.read()
    run.wait(timeout=300)
else:
    run.send_signal(getattr(signal, "SIG" + name))
    out, err = run.communicate(timeout=300)
    said += out + (err or "")
print(said)
assert run.returncode == code, run.returncode
assert os.path.exists(path + ".npz")
steps = [json.loads(line)["step"] for line in open(path + ".jsonl")]
assert steps == list(range(1, len(steps) + 1)) and len(steps) >= 100, len(steps)
