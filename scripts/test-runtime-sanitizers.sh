#!/usr/bin/env bash
# Builds the runtime alone under AddressSanitizer with UndefinedBehaviorSanitizer
# and under ThreadSanitizer, and runs its tests. oneDNN itself, which uses
# libgomp, is not instrumented; each worker calls it with one OpenMP thread.
source "$(dirname "$0")/common.sh"

launcher=()
if command -v ccache >/dev/null; then
  launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi

# check NAME SANITIZERS: builds into a folder of that name and runs the tests.
check() {
  local tree=$build/runtime-$1
  say "Building the runtime with -fsanitize=$2 in $tree"
  cmake -S runtime -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_C_FLAGS="-fsanitize=$2" \
    -DCMAKE_CXX_FLAGS="-fsanitize=$2 -fno-sanitize-recover=all" \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" "${launcher[@]}" >/dev/null
  ninja -C "$tree" shardc-rt-tests shardc-rt-cts
  say "Running the runtime's tests with -fsanitize=$2"
  ctest --test-dir "$tree" --output-on-failure -R '^runtime-'
}

check asan address,undefined
check tsan thread
