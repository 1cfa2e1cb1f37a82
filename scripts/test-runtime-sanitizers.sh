#!/usr/bin/env bash
# Builds the runtime alone under AddressSanitizer with UndefinedBehaviorSanitizer
# and under ThreadSanitizer, and runs its tests.
#
#   scripts/test-runtime-sanitizers.sh [--all]
#
# UndefinedBehaviorSanitizer's checks of null pointers and object sizes are left out:
# AddressSanitizer stops at both, and they make a quarter of the compile time.
#
# Conformance tests take minutes: every other one runs under AddressSanitizer and the
# rest under ThreadSanitizer, or with --all all of them under both. Tests of one thread
# are not built for ThreadSanitizer (runtime/test/CMakeLists.txt).
source "$(dirname "$0")/common.sh"

# check PRESET [CTEST-FLAG...]: runtime/CMakePresets.json says how it is built.
check() {
  local preset=$1 tree=$build/runtime-$1
  shift
  say "Building the runtime's tests: preset $preset, in $tree"
  cmake -S runtime -B "$tree" --preset "$preset" "${unity[@]}" "${launcher[@]}" >/dev/null
  ninja -C "$tree" shardc-rt-tests shardc-rt-cts
  say "Running the runtime's tests: preset $preset"
  ctest --test-dir "$tree" --output-on-failure -j "$(nproc)" -R '^runtime-' "$@"
}

launcher=()
if command -v ccache >/dev/null; then
  launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
if [ "${1:-}" = --all ]; then
  check asan
  check tsan
else
  # The odd shapes remain, which reach every edge of a panel.
  GTEST_FILTER='-PackedGemmTest.LargeShapes*' check asan -E '^runtime-collectives-[02]$'
  # What is left behind by failures, and what damaged files do, is for
  # AddressSanitizer: the failures of one executor show their threads.
  one_thread='CheckpointTest.AManifest*:NpzTest*:*DamagedPlanTest*'
  one_thread+=':CudaSeveralGpusTest.EveryFailure*:CudaPipelineTest.EveryFailure*:CudaTraceTest.EveryFailure*'
  GTEST_FILTER="-$one_thread" check tsan -E '^runtime-collectives-[13]$'
fi
