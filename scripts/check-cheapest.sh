#!/usr/bin/env bash
# --partition=cheapest never sends more than --partition=follow by objective
# bytes, and never costs more time by objective time, by the closing remarks: on
# models of several layers, strategies and meshes.
#
#   scripts/check-cheapest.sh [MODULUS REMAINDER]
#
# With a modulus m and a remainder r only every m-th case, starting with the
# r-th, runs.
source "$(dirname "$0")/common.sh"
takeEvery "$@"
case "$build" in /*) bin=$build/bin ;; *) bin=$PWD/$build/bin ;; esac
PATH=$bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ran=0 cheaper=0 faster=0

# compile FLAG...: what the compiler says of $work/model.mlir. Code for one CPU is
# enough.
compile() {
  shardc-compile "$work/model.mlir" --target=cpu:x86-64-v3 "$@" -o "$work/model.plan" 2>&1
}

# sent MODE: what a step of $work/model.mlir sends.
sent() {
  compile --partition="$1" --objective=bytes |
    sed -n 's/.*a step sends \([0-9]*\) bytes per device.*/\1/p'
}

# costs: microseconds of a step of $work/model.mlir, and those of the cheapest.
costs() {
  compile |
    sed -n 's/.*a step costs \([0-9.]*\) us .*the cheapest plan costs \([0-9.]*\) us .*/\1 \2/p'
}

# check LAYERS BATCH STRATEGY MESH GEN-FLAG...
check() {
  local layers=$1 batch=$2 strategy=$3 mesh=$4 follow cheapest
  shift 4
  if ! isTaken; then return; fi
  shardc-gen --layers="$layers" --batch-size="$batch" --strategy="$strategy" \
    --mesh="$mesh" "$@" -o "$work/model.mlir"
  follow=$(sent follow) cheapest=$(sent cheapest)
  if [ -z "$cheapest" ] || [ "$cheapest" -gt "$follow" ]; then
    echo "FAILED: $strategy $mesh $layers batch $batch $*: follow '$follow', cheapest '$cheapest'"
    exit 1
  fi
  local own least
  read -r own least < <(costs) || true
  if [ -z "$least" ] || awk "BEGIN { exit !($least > $own) }"; then
    echo "FAILED: $strategy $mesh $layers batch $batch $*: follow '$own' us, cheapest '$least' us"
    exit 1
  fi
  if awk "BEGIN { exit !($least < $own) }"; then faster=$((faster + 1)); fi
  ran=$((ran + 1))
  if [ "$cheapest" -lt "$follow" ]; then cheaper=$((cheaper + 1)); fi
}

for layers in 64,256,128,32 33,17,20,9 128,128,128,128,128,128,8; do
  for flags in "--optimizer=sgd --activation=relu" \
      "--optimizer=adamw --activation=gelu --layer-norm --clip-norm=1"; do
    for strategy in dp zero1 zero2 fsdp; do
      check $layers 96 $strategy data=8 $flags
    done
    check $layers 96 tp model=4 $flags
    check $layers 96 dp+tp data=2,model=4 $flags
    check $layers 96 fsdp+tp data=4,model=2 $flags
    check $layers 96 hsdp replica=2,shard=4 $flags
  done
  check $layers 96 hsdp+tp replica=2,shard=2,model=2 --optimizer=adam
done
echo "in $ran cases cheapest sends no more than follow, in $cheaper less;" \
  "by time it costs no more, in $faster less"
