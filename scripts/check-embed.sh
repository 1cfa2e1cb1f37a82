#!/usr/bin/env bash
# Installs the runtime into a fresh folder, builds examples/embed against its
# static and its shared library, and examples/embed-c by the C compiler, and trains with
# all of them, as host applications do. Then examples/serve answers for what was trained.
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

cmake -S examples/serve -B "$work/serve" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_FLAGS='-Wall -Wextra -Werror' \
  -DCMAKE_PREFIX_PATH="$work/installed" >"$work/log"
cmake --build "$work/serve" >>"$work/log" || { cat "$work/log"; exit 1; }
"$build/bin/shardc-gen" --layers=3,8,2 --strategy=fsdp --mesh=data=3 --batch-size=4 \
  --optimizer=adam -o "$work/served.mlir"
printf '%s\n' x0,x1,x2,y0,y1 0.5,1,-2,1,0 3,0.25,-1,0,1 7,1,0,1,1 -1,-2,5,0,0 \
  0.125,2,3,1,0 4,4,-4,0,1 >"$work/rows.csv"
"$build/bin/shardc-run" "$work/served.mlir" --data="$work/rows.csv" --epochs=9 \
  --checkpoint-dir="$work/checkpoints" --save-params="$work/served.npz" &>"$work/log" ||
  { cat "$work/log"; exit 1; }
# A plan for another mesh, which never saw the training.
"$build/bin/shardc-compile" "$work/served.mlir" --mesh=data=2 -o "$work/served.shardc" \
  2>"$work/log"
serve=("$work/serve/serve" "$work/served.shardc")
"${serve[@]}" "$work/checkpoints" "$work/rows.csv" >"$work/all"
"${serve[@]}" "$work/served.npz" "$work/rows.csv" >"$work/from-file"
cmp "$work/all" "$work/from-file"
[ "$(wc -l <"$work/all")" -eq 6 ]
# The same rows as requests of one row, of two with one that is wrong between them, of a
# whole batch without an empty line, and of the last row.
rows() { tail -n +2 "$work/rows.csv" | cut -d, -f1-3 | tr , ' ' | sed -n "$1p"; }
{
  rows 1
  printf '\n1 2\n\n'
  rows 2,3
  printf '\n'
  rows 1,4
  rows 6
} | "${serve[@]}" "$work/checkpoints" >"$work/answers"
{
  sed -n 1p "$work/all"
  printf '\nerror: expected 3 numbers in a row, found "1 2"\n\n'
  sed -n 2,3p "$work/all"
  printf '\n'
  sed -n 1,4p "$work/all"
  printf '\n'
  sed -n 6p "$work/all"
  printf '\n'
} | diff - "$work/answers"
status=0
"${serve[@]}" "$work/none" "$work/rows.csv" 2>"$work/error" || status=$?
[ $status = 2 ] && grep -q '^serve: .*none' "$work/error" ||
  { cat "$work/error"; echo "expected an error that names none, found code $status"; exit 1; }
