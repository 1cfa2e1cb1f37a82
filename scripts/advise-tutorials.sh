#!/usr/bin/env bash
# Advice for the four models of docs/Advice.md on three machines: the advised plan of
# each, and how long shardc-advise took.
#
#   scripts/advise-tutorials.sh [MODEL...]    some of 25M, 355M, 1B and 175B (default: all)
#
# The tables with their sentences stay in build/advice.
source "$(dirname "$0")/common.sh"

# Blocks of two layers, from `width` to four times as many and back.
list_layers() {
  local width=$1 blocks=$2 layers=$1
  for ((i = 0; i < blocks; ++i)); do
    layers+=,$((4 * width)),$width
  done
  echo "$layers"
}

declare -A layers=([25M]=$(list_layers 1024 3) [355M]=$(list_layers 1024 42)
  [1B]=$(list_layers 2048 30) [175B]=$(list_layers 21376 48))
declare -A batch=([25M]=65536 [355M]=524288 [1B]=524288 [175B]=3145728)
declare -A devices=([25M]=8 [355M]=8 [1B]=8 [175B]=1024)

build_shardc shardc-gen shardc-advise >&2
folder=$build/advice
mkdir -p "$folder"
for model in "${@:-25M 355M 1B 175B}"; do
  for name in $model; do
    "$build/bin/shardc-gen" --layers="${layers[$name]}" --optimizer=adam \
      --batch-size="${batch[$name]}" -o "$folder/$name.mlir"
    for machine in a100-40 h100 examples/machines/ethernet10.json; do
      table=$folder/$name.$(basename "$machine" .json).txt
      begin=$SECONDS
      "$build/bin/shardc-advise" "$folder/$name.mlir" --devices="${devices[$name]}" \
        --machine="$machine" --dtype=bf16 >"$table" || true
      echo "$name on ${devices[$name]} devices, $machine, $((SECONDS - begin)) s, $(sed -n 2p "$table")"
      sed -n 3,4p "$table"
    done
  done
done
