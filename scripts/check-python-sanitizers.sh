#!/usr/bin/env bash
# The tests of Python's module with the module and the runtime under AddressSanitizer and
# UndefinedBehaviorSanitizer: memory that is used after it is freed, or outside of its
# bounds. The compiler is that of the build, without them. Leaks of Python's own are many
# and are not shown: python/tests/test_soak.py finds those of steps.
#
# Needs the virtual environment that scripts/check-python.sh leaves; exit code 77 without it.
source "$(dirname "$0")/common.sh"
source scripts/common-python.sh
[ -e "$work/venv/bin/pytest" ] || skip "run scripts/check-python.sh first"
tree=$build/runtime-asan
launcher=()
if command -v ccache >/dev/null; then
  launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
say "Building the runtime with sanitizers in $tree"
cmake -S runtime -B "$tree" --preset asan "${unity[@]}" "${launcher[@]}" >/dev/null
ninja -C "$tree" ShardcRuntime
say "Building the module with them"
rm -rf "$work/asan"
mkdir -p "$work/asan"
cmake --install "$build" --prefix "$work/asan/prefix" >"$work/asan/log"
cp "$tree/libShardcRuntime.a" "$(find "$work/asan/prefix" -name libShardcRuntime.a)"
flags="-fsanitize=address,undefined -fno-sanitize=vptr,null,object-size -fno-sanitize-recover=all -O1 -g1"
CMAKE_PREFIX_PATH=$work/asan/prefix CXXFLAGS=$flags "$work/venv/bin/pip" install -q \
  --no-build-isolation --no-deps --target "$work/asan/site" ./python
say "Running the tests"
export PYTHONPATH=$work/asan/site PYTHONMALLOC=malloc
export ASAN_OPTIONS=detect_leaks=0:use_sigaltstack=0
LD_PRELOAD="$(gcc -print-file-name=libasan.so):$(gcc -print-file-name=libubsan.so):$(gcc -print-file-name=libstdc++.so)" \
  "$work/venv/bin/python" -m pytest -q --no-header --basetemp="$work/tmp" -p no:cacheprovider \
  python/tests/test_module.py python/tests/test_jit.py
