#!/usr/bin/env bash
# Installs the runtime into a fresh folder, builds examples/embed against its
# static and its shared library and trains with both, as a host application does.
source "$(dirname "$0")/common.sh"
case "$build" in /*) ;; *) build=$PWD/$build ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/installed" >"$work/install.log"
"$build/bin/shardc-compile" examples/mlp_fsdp_tp.mlir -o "$work/mlp.shardc"
for shared in OFF ON; do
  cmake -S examples/embed -B "$work/embed-$shared" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/installed" \
    -DEMBED_SHARED=$shared >"$work/log"
  cmake --build "$work/embed-$shared" >>"$work/log" || { cat "$work/log"; exit 1; }
  "$work/embed-$shared/embed" "$work/mlp.shardc" 50 >"$work/output-$shared"
done
# Through a pipe, grep -q would end ldd early, and with it the script.
grep -q libShardcRuntime.so <<<"$(ldd "$work/embed-ON/embed")" ||
  { echo 'the program does not use the shared library'; exit 1; }
cmp "$work/output-OFF" "$work/output-ON"
cp "$work/output-ON" "$work/output"
cat "$work/output"
first=$(awk '/^step 0 /{print $4}' "$work/output")
last=$(awk '/^step 49 /{print $4}' "$work/output")
awk -v first="$first" -v last="$last" 'BEGIN { exit !(last < first / 2) }' ||
  { echo "expected the loss to fall below half of $first, found $last"; exit 1; }
