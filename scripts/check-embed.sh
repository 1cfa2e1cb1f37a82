#!/usr/bin/env bash
# Installs the runtime into a fresh folder, builds examples/embed against it and
# trains with it: what a host application would do.
source "$(dirname "$0")/common.sh"
case "$build" in /*) ;; *) build=$PWD/$build ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/installed" >"$work/install.log"
cmake -S examples/embed -B "$work/embed" -G Ninja \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/installed" >"$work/log"
cmake --build "$work/embed" >>"$work/log" || { cat "$work/log"; exit 1; }
"$build/bin/shardc-compile" examples/mlp_fsdp_tp.mlir -o "$work/mlp.shardc"
"$work/embed/embed" "$work/mlp.shardc" 50 | tee "$work/output"
first=$(awk '/^step 0 /{print $4}' "$work/output")
last=$(awk '/^step 49 /{print $4}' "$work/output")
awk -v first="$first" -v last="$last" 'BEGIN { exit !(last < first / 2) }' ||
  { echo "expected the loss to fall below half of $first, found $last"; exit 1; }
