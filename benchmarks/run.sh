#!/usr/bin/env bash
# Measures shardc on this computer's CPU against its peers and its goals.
#
#   benchmarks/run.sh [--with-jax] [--with-checkpoint-peers] [--quick] [--best] [--json FILE] [--rounds N] [--only SECTIONS]
#
# Prints one line per goal: the peer's figure, ours, their ratio, whether the goal
# is met, and how far from the limits of this computer. Builds what it needs first.
# --best compares the best of many short rounds instead of medians: for a computer
# that is busy with other work. --quick only shows that all of it runs.
# --with-jax installs the peers of requirements.txt into build/jax-venv; without
# it JAX takes part if it is there, or in the Python that --jax names. So does
# --with-checkpoint-peers with Orbax and torch, 6 GB in build/checkpoints-venv.
source "$(dirname "$0")/../scripts/common.sh"

arguments=()
python=$build/jax-venv/bin/python
[ -x "$python" ] || python=python3
peers=$build/checkpoints-venv/bin/python
for argument in "$@"; do
  if [ "$argument" = --with-jax ]; then
    python=$build/jax-venv/bin/python
    [ -x "$python" ] || python3 -m venv "$build/jax-venv"
    "$python" -m pip install -q -r benchmarks/requirements.txt
  elif [ "$argument" = --with-checkpoint-peers ]; then
    [ -x "$peers" ] || python3 -m venv "$build/checkpoints-venv"
    "$peers" -m pip install -q -r benchmarks/requirements-checkpoints.txt
  else
    arguments+=("$argument")
  fi
done
build_shardc shardc-gen shardc-compile shardc-advise shardc-run shardc-bench-steps \
  shardc-bench-micro shardc-bench-checkpoints >&2
# Where there is MPI.
if ninja -C "$build" -t query shardc-bench-allreduce &>/dev/null; then
  ninja -C "$build" shardc-bench-allreduce >&2
fi
exec python3 benchmarks/goals --bin "$build/bin" --jax "$python" \
  --checkpoint-peers "$peers" "${arguments[@]}"
