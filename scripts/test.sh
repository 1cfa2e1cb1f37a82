#!/usr/bin/env bash
# Installs what is missing, builds everything, runs every test. The last lines
# are the test runner's own summary. Works on a fresh Debian 12.
source "$(dirname "$0")/common.sh"

install_packages
build_shardc
say "Running the runtime's tests under sanitizers"
scripts/test-runtime-sanitizers.sh
say "Running all tests"
ctest --test-dir "$build" --output-on-failure -j "$(nproc)"
