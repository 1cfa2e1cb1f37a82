#!/usr/bin/env bash
# check-jax.sh [EVERY FIRST]: exports every so many programs of python/tests anew, trains
# them with JAX, and compares text and values with test/golden/jax. JAX and its
# libraries are in a virtual environment in the build folder.
#
# Exit code 77 where packages of Python cannot be installed.
source "$(dirname "$0")/common.sh"
source scripts/common-python.sh
make_venv
cd python/tests
PYTHONPATH=.. PYTHONDONTWRITEBYTECODE=1 "$work/venv/bin/python" make_goldens.py --check "${1:-1}" "${2:-0}"
