#!/usr/bin/env bash
# Plans for a GPU train as those for the emulated GPU do, whose kernels they
# borrow: driver and cuBLASLt are the fake of runtime/test/fake, which
# runs what a graph holds in an order drawn at random among those it allows.
# Without library GEMMs losses and parameters are the same bits; with them
# sums have another order, and losses differ by 1e-5 at most, parameters by 1e-4;
# in bf16, where another order may round to another number, by 1e-2.
#
#   scripts/check-cuda.sh [MODULUS REMAINDER]
#   SHARDC_LIBCUDA=libcuda.so.1 scripts/check-cuda.sh   # on a GPU, within 1e-5
#
# With a modulus m and a remainder r only every m-th case, starting with the
# r-th, runs.
source "$(dirname "$0")/common.sh"
case "$build" in /*) bin=$build/bin ;; *) bin=$PWD/$build/bin ;; esac
PATH=$bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
takeEvery "$@"
cases=0 failed=0 equal=0 gpu=${SHARDC_LIBCUDA:-}
if [ -z "$gpu" ]; then
  export SHARDC_LIBCUDA=$bin/shardc-rt-fake.so
  export SHARDC_LIBCUBLASLT=$SHARDC_LIBCUDA
fi

# train NAME FLAG...: leaves NAME.jsonl and NAME.npz.
train() {
  local name=$1
  shift
  shardc-run "$work/$name.shardc" --steps=12 --seed=3 \
    --metrics="$work/$name.jsonl" --save-params="$work/$name.npz" "$@"
}

losses() { sed 's/.*"loss":\([^,}]*\).*/\1/' "$1"; }

# check equal|close|half MODEL DATA FLAG...: close where the library multiplies,
# half where it multiplies bf16.
check() {
  if ! isTaken; then return; fi
  local how=$1 model=$2 data=$3 tolerances=(1e-5 1e-4)
  if [ "$how" = half ]; then tolerances=(1e-2 1e-2); fi
  shift 3
  cases=$((cases + 1))
  if ! {
    shardc-compile "$model" --target=emulated-gpu "$@" -o "$work/emulated.shardc" &&
      shardc-compile "$model" --target=cuda:sm_90 "$@" -o "$work/cuda.shardc" &&
      extract-code "$work/emulated.shardc" "$work/kernels.so" &&
      train emulated --data="$data" &&
      SHARDC_FAKE_KERNELS=$work/kernels.so \
        train cuda --data="$data" --device=cuda &&
      losses "$work/emulated.jsonl" >"$work/emulated.losses" &&
      losses "$work/cuda.jsonl" >"$work/cuda.losses" &&
      [ "$(wc -l <"$work/cuda.losses")" -eq 12 ]
  } &>"$work/log"; then
    failed=$((failed + 1))
    printf 'FAILED: %s %s\n%s\n' "$model" "$*" "$(tail -n 5 "$work/log")"
    return
  fi
  if cmp -s "$work/emulated.losses" "$work/cuda.losses" &&
    cmp -s "$work/emulated.npz" "$work/cuda.npz"; then
    equal=$((equal + 1))
    return
  fi
  { printf '['; paste -sd, "$work/emulated.losses"; printf ']'; } >"$work/losses.json"
  if [ "$how$gpu" = equal ] ||
    ! compare-training "$work/cuda.jsonl" "$work/losses.json" "$work/cuda.npz" \
      "$work/emulated.npz" "${tolerances[@]}" &>"$work/log"; then
    failed=$((failed + 1))
    printf 'FAILED: %s %s: other numbers\n%s\n' "$model" "$*" \
      "$(tail -n 5 "$work/log")"
  fi
}

for example in examples/mlp*.mlir; do
  check close "$example" synthetic:quadratic --ignore-expect
done
check close examples/digits_fsdp.mlir digits
for strategy in none dp zero1 zero2 fsdp hsdp tp dp+tp fsdp+tp hsdp+tp; do
  case $strategy in
  hsdp*) mesh=replica=2,shard=2,model=2 ;;
  *) mesh=data=4,model=2 ;;
  esac
  # Uneven dimensions and many kinds of kernels, with small GEMMs.
  shardc-gen --layers=64,33,65,10 --batch-size=96 --strategy=$strategy \
    --mesh=$mesh --activation=gelu --loss=softmax_cross_entropy \
    --optimizer=adamw --clip-norm=0.5 --layer-norm --dropout=0.1 \
    -o "$work/small.mlir"
  check equal "$work/small.mlir" digits
  check equal "$work/small.mlir" digits --bucket-bytes=4096 --microbatches=4
  check equal "$work/small.mlir" digits --dtype=bf16
done
# Pipelines, with all ranks on one GPU.
for run in "pp stage=3 zero-bubble 1" "dp+tp+pp stage=2,data=2,model=2 1f1b 1" \
  "fsdp+pp stage=2,data=2 interleaved 2" "zero1+pp stage=2,data=3 gpipe 1"; do
  read -r strategy mesh schedule chunks <<<"$run"
  shardc-gen --layers=64,33,65,33,10 --batch-size=96 --strategy=$strategy \
    --mesh=$mesh --pipeline-schedule=$schedule --virtual-stages=$chunks \
    --microbatches=4 --activation=gelu --loss=softmax_cross_entropy \
    --optimizer=adamw --clip-norm=0.5 --layer-norm --dropout=0.1 \
    -o "$work/pipeline.mlir"
  check equal "$work/pipeline.mlir" digits
done
# GEMMs that the library computes.
for strategy in fsdp tp dp+tp; do
  shardc-gen --layers=64,384,256,10 --batch-size=256 --strategy=$strategy \
    --mesh=data=4,model=2 --activation=relu --loss=softmax_cross_entropy \
    --optimizer=sgd --learning-rate=0.05 -o "$work/large.mlir"
  check close "$work/large.mlir" digits
  check half "$work/large.mlir" digits --dtype=bf16
done
# Widths that are no multiples of 128, in a loop.
shardc-gen --layers=64,300,200,10 --batch-size=512 --strategy=dp \
  --mesh=data=2 --activation=relu --loss=softmax_cross_entropy \
  --optimizer=sgd --learning-rate=0.05 -o "$work/large.mlir"
check close "$work/large.mlir" digits --microbatches=2
echo "$cases plans, $equal of them with equal bits; $failed failed"
[ "$failed" -eq 0 ]
