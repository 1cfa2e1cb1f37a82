#!/usr/bin/env bash
# Installs the runtime into a fresh folder, builds examples/embed against its
# static and its shared library, and examples/embed-c by the C compiler, and trains with
# all of them, as host applications do.
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

cmake -S examples/embed-c -B "$work/embed-c" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_C_FLAGS=-Werror -DCMAKE_PREFIX_PATH="$work/installed" >"$work/log"
cmake --build "$work/embed-c" >>"$work/log" || { cat "$work/log"; exit 1; }
"$work/embed-c/embed-c" "$work/mlp.shardc" 50 >"$work/output-c"
cat "$work/output-c"
first=$(awk '/^step 0 /{print $4}' "$work/output-c")
last=$(awk '/^step 49 /{print $4}' "$work/output-c")
awk -v first="$first" -v last="$last" 'BEGIN { exit !(last < first) }' ||
  { echo "expected the loss to fall below $first, found $last"; exit 1; }
status=0
"$work/embed-c/embed-c" "$work/no.shardc" 2>"$work/error" || status=$?
[ $status = 2 ] && grep -q '^embed-c: .*no.shardc' "$work/error" ||
  { cat "$work/error"; echo "expected an error that names no.shardc, found code $status"; exit 1; }
