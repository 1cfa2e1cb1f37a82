#!/usr/bin/env bash
# Builds everything with AddressSanitizer and UndefinedBehaviorSanitizer and
# runs the compiler's tests and a part of the strategies. Takes long: not part
# of scripts/test.sh, which covers the runtime in this way.
source "$(dirname "$0")/common.sh"
export SHARDC_BUILD_DIR=$PWD/build-sanitized
build=$SHARDC_BUILD_DIR
# LLVM keeps what it registers until the process ends; and its crash handler
# gives threads signal stacks of its own, which the sanitizer would take down.
export ASAN_OPTIONS=detect_leaks=0:use_sigaltstack=0

install_packages
say "Building with sanitizers in $build"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DSHARDC_SANITIZE=address,undefined >/dev/null
ninja -C "$build"
say "Running the tests"
ctest --test-dir "$build" --output-on-failure -j "$(nproc)" -E 'format|layering|strategies|embed'
scripts/check-strategies.sh 12 5
