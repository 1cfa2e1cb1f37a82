#!/usr/bin/env bash
# Builds a wheel of the module `shardc` as `pip install ./python` does, with pip's own build
# environment, and compiler and runtime out of the build; installs it into a new virtual
# environment, and runs the example of README.md there. The installation that the wheel was
# built with is deleted before, and nothing may be loaded from the source tree or the build.
#
# Exit code 77 where packages of Python cannot be installed.
source "$(dirname "$0")/common.sh"
source scripts/common-python.sh
work=$build/wheel
rm -rf "$work"
mkdir -p "$work"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip 'Python is older than 3.11'
python3 -m venv "$work/venv" >"$work/log" 2>&1 || skip 'no virtual environment can be made'
"$work/venv/bin/pip" install -q --retries 1 --timeout 10 'numpy>=1.26' >"$work/log" 2>&1 ||
  skip "no packages can be installed ($work/log)"
cmake --install "$build" --prefix "$work/prefix" >"$work/log"
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_C_COMPILER_LAUNCHER=ccache
fi
CMAKE_PREFIX_PATH=$work/prefix "$work/venv/bin/pip" wheel -q --no-deps -w "$work/dist" ./python \
  >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
rm -rf "$work/prefix"
"$work/venv/bin/pip" install -q --no-index "$work"/dist/shardc-*.whl
sed -n '/^```python$/,/^```$/p' README.md | sed '/^```/d' >"$work/example.py"
cat >>"$work/example.py" <<'END'

import sys
paths = {line.split(maxsplit=5)[5].strip() for line in open("/proc/self/maps") if "/" in line}
foreign = [path for path in paths if path.startswith((sys.argv[1] + "/", sys.argv[2] + "/"))
           and not path.startswith(sys.prefix + "/")]
assert not foreign, foreign
assert any(path.startswith(sys.prefix) and "shardc-compiler" in path for path in paths), paths
END
source=$PWD
cd /
env -i HOME="$work" PATH=/usr/bin:/bin SHARDC_PLAN_CACHE= \
  "$work/venv/bin/python" -I "$work/example.py" "$source" "$build" | tail -2
rm -rf "$work/venv"
