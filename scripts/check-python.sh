#!/usr/bin/env bash
# Installs the module `shardc` by pip into a virtual environment in the build folder, with
# compiler and runtime out of the build, and runs its tests and the notebook in examples/.
#
# Exit code 77 where packages of Python cannot be installed.
source "$(dirname "$0")/common.sh"
case "$build" in /*) ;; *) build=$PWD/$build ;; esac
work=$build/python
mkdir -p "$work"
skip() {
  echo "the tests of Python's module did not run: $1"
  exit 77
}
if ! cmp -s python/requirements-test.txt "$work/installed.txt"; then
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip 'Python is older than 3.11'
  python3 -m venv "$work/venv" >"$work/log" 2>&1 || skip 'no virtual environment can be made'
  "$work/venv/bin/pip" install -q --retries 1 --timeout 10 -r python/requirements-test.txt \
    >"$work/log" 2>&1 || skip "no packages can be installed ($work/log)"
  cp python/requirements-test.txt "$work/installed.txt"
fi
cmake --install "$build" --prefix "$work/prefix" >"$work/log"
CMAKE_PREFIX_PATH=$work/prefix "$work/venv/bin/pip" install -q --no-build-isolation --no-deps \
  --force-reinstall -C build-dir="$work/wheel" ./python >"$work/log" 2>&1 ||
  { cat "$work/log"; exit 1; }
cd "$work"
"$work/venv/bin/python" -m pytest -q --no-header --basetemp="$work/tmp" -p no:cacheprovider "$OLDPWD/python/tests"
"$work/venv/bin/python" "$OLDPWD/python/tests/run_notebook.py" "$OLDPWD/examples/tutorial.ipynb"
"$work/venv/bin/python" -m mypy --config-file "$OLDPWD/python/pyproject.toml" -p shardc
