#!/usr/bin/env bash
# Installs the module `shardc` by pip into a virtual environment in the build folder, with
# compiler and runtime out of the build, and runs its tests and the notebook in examples/.
#
# Exit code 77 where packages of Python cannot be installed.
source "$(dirname "$0")/common.sh"
source scripts/common-python.sh
make_venv
cmake --install "$build" --prefix "$work/prefix" >"$work/log"
CMAKE_PREFIX_PATH=$work/prefix "$work/venv/bin/pip" install -q --no-build-isolation --no-deps \
  --force-reinstall -C build-dir="$work/wheel" ./python >"$work/log" 2>&1 ||
  { cat "$work/log"; exit 1; }
cd "$work"
"$work/venv/bin/python" -m pytest -q --no-header --basetemp="$work/tmp" -p no:cacheprovider "$OLDPWD/python/tests"
"$work/venv/bin/python" "$OLDPWD/python/tests/run_notebook.py" "$OLDPWD/examples/tutorial.ipynb"
"$work/venv/bin/python" -m mypy --config-file "$OLDPWD/python/pyproject.toml" -p shardc
"$work/venv/bin/python" -m mypy --strict "$OLDPWD/python/tests/typed_program.py"
