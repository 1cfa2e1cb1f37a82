#!/usr/bin/env bash
# check-jax.sh [EVERY FIRST]: exports every so many programs of python/tests anew, trains
# them with JAX, and compares text and values with test/golden/jax. JAX and its
# libraries go into a virtual environment in the build folder.
#
# Exit code 77 where packages of Python cannot be installed.
source "$(dirname "$0")/common.sh"
case "$build" in /*) ;; *) build=$PWD/$build ;; esac
work=$build/jax
mkdir -p "$work"
skip() {
  echo "the programs of JAX were not exported anew: $1"
  exit 77
}
if ! cmp -s python/tests/requirements.txt "$work/requirements.txt"; then
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip 'Python is older than 3.11'
  python3 -m venv "$work/venv" >"$work/log" 2>&1 || skip 'no virtual environment can be made'
  "$work/venv/bin/pip" install -q --retries 1 --timeout 10 -r python/tests/requirements.txt \
    >"$work/log" 2>&1 || skip "no packages can be installed ($work/log)"
  cp python/tests/requirements.txt "$work/requirements.txt"
fi
cd python/tests
PYTHONPATH=.. PYTHONDONTWRITEBYTECODE=1 "$work/venv/bin/python" make_goldens.py --check "${1:-1}" "${2:-0}"
