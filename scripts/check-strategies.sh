#!/usr/bin/env bash
# Every strategy on many meshes and sizes, also such as do not divide: the
# sharded program gives what the unpartitioned one gives, with padding poisoned
# by NaN; on integers where all is exact in f32, bit for bit. The unpartitioned
# program takes the whole batch at once, whatever the number of microbatches.
#
#   scripts/check-strategies.sh [MODULUS REMAINDER [MODE [TARGET]]]
#
# With a modulus m and a remainder r only every m-th case, starting with the
# r-th, runs. MODE is that of --partition,
# follow by default, TARGET that of --target, cpu by default.
source "$(dirname "$0")/common.sh"
takeEvery ${1+"$1"} ${2+"$2"}
mode=${3:-follow}
target=${4:-cpu}
case "$build" in /*) bin=$build/bin ;; *) bin=$PWD/$build/bin ;; esac
PATH=$bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ran=0 failed=0
run=() # Further flags of shardc-run.

# check NAME LAYERS BATCH STEPS KIND WANTED GEN-FLAG...: generates, runs, greps.
check() {
  local name=$1 layers=$2 batch=$3 steps=$4 kind=$5 wanted=$6
  shift 6
  if ! isTaken; then return; fi
  ran=$((ran + 1))
  local output params=()
  make-data "$kind" "$((batch * 2))" "$layers" "$work/data.npz" "$work/params.npz"
  if [ "$kind" = integers ]; then params=(--load-params="$work/params.npz"); fi
  if ! output=$(shardc-gen --layers="$layers" --batch-size="$batch" "$@" \
      -o "$work/model.mlir" 2>&1 &&
      shardc-run "$work/model.mlir" --data="$work/data.npz" --epochs="$steps" \
        --steps="$steps" --partition="$mode" --target="$target" \
        --check-reference "${params[@]}" "${run[@]}" 2>&1) ||
      ! grep -q "$wanted" <<<"$output"; then
    failed=$((failed + 1))
    printf 'FAILED: %s\n  shardc-gen --layers=%s --batch-size=%s %s\n  %s\n%s\n' \
      "$name" "$layers" "$batch" "$*" "${run[*]}" "$(tail -n 4 <<<"$output")"
  fi
}

meshes="data=1 data=2 data=3 data=4 data=6 data=8 data=4,model=2
  data=2,model=4 data=2,model=3 model=3 model=4"
for strategy in none dp zero1 zero2 fsdp tp dp+tp fsdp+tp; do
  for mesh in $meshes; do
    common=(--strategy=$strategy --mesh=$mesh)
    check "$strategy $mesh, uneven" 10,33,17,3 30 4 real 'agrees\|bit-equal' \
      --activation=gelu --loss=mse --optimizer=adam --learning-rate=0.01 \
      "${common[@]}"
    check "$strategy $mesh, classifier" 7,13,5 24 4 labels 'agrees\|bit-equal' \
      --activation=silu --loss=softmax_cross_entropy --optimizer=momentum \
      --learning-rate=0.05 --clip-norm=0.5 --layer-norm "${common[@]}"
    check "$strategy $mesh, dropout" 12,24,24,6 25 4 labels 'agrees\|bit-equal' \
      --activation=tanh --loss=softmax_cross_entropy --optimizer=adamw \
      --learning-rate=0.01 --dropout=0.2 "${common[@]}"
    check "$strategy $mesh, integers" 6,10,7,4 16 1 integers bit-equal \
      --activation=relu --loss=mse --optimizer=sgd --learning-rate=0.125 \
      "${common[@]}"
    check "$strategy $mesh, integers, two steps" 6,4 16 2 integers bit-equal \
      --activation=relu --loss=mse --optimizer=sgd --learning-rate=0.5 \
      "${common[@]}"
  done
done
for strategy in hsdp hsdp+tp; do
  for mesh in replica=2,shard=2,model=2 replica=2,shard=4 replica=3,shard=2 \
      replica=2,shard=3,model=2; do
    common=(--strategy=$strategy --mesh=$mesh)
    check "$strategy $mesh, uneven" 10,33,17,3 30 4 real 'agrees\|bit-equal' \
      --activation=gelu --loss=mse --optimizer=adam --learning-rate=0.01 \
      "${common[@]}"
    check "$strategy $mesh, classifier" 7,13,5 24 4 labels 'agrees\|bit-equal' \
      --activation=sigmoid --loss=softmax_cross_entropy --optimizer=adamw \
      --learning-rate=0.01 --clip-norm=0.5 "${common[@]}"
    check "$strategy $mesh, integers" 6,10,7,4 16 1 integers bit-equal \
      --activation=relu --loss=mse --optimizer=sgd --learning-rate=0.125 \
      "${common[@]}"
  done
done
# The batch in microbatches: the results of the whole batch on one device.
for strategy in none dp zero2 fsdp tp dp+tp fsdp+tp; do
  for mesh in data=1 data=3 data=4 data=8 data=4,model=2 data=2,model=3 \
      model=3; do
    common=(--strategy=$strategy --mesh=$mesh)
    check "$strategy $mesh, 4 microbatches, uneven" 10,33,17,3 96 3 real \
      'agrees\|bit-equal' --activation=gelu --loss=mse --optimizer=adam \
      --learning-rate=0.01 --microbatches=4 "${common[@]}"
    check "$strategy $mesh, 2 microbatches, dropout" 12,24,24,6 48 3 labels \
      'agrees\|bit-equal' --activation=tanh --loss=softmax_cross_entropy \
      --optimizer=adamw --learning-rate=0.01 --dropout=0.2 --layer-norm \
      --clip-norm=0.5 --microbatches=2 "${common[@]}"
    case $mesh in *data=3*) continue ;; esac
    check "$strategy $mesh, 4 microbatches, integers" 6,10,7,4 32 1 integers \
      bit-equal --activation=relu --loss=mse --optimizer=sgd \
      --learning-rate=0.125 --microbatches=4 "${common[@]}"
  done
done
# In bf16: close to what one device does, and on small integers exact.
run=(--dtype=bf16)
for strategy in dp zero2 fsdp tp dp+tp fsdp+tp; do
  for mesh in data=3 data=8 data=4,model=2 data=2,model=3; do
    common=(--strategy=$strategy --mesh=$mesh)
    check "$strategy $mesh, bf16, uneven" 12,24,24,6 50 4 labels \
      'agrees\|bit-equal' --activation=gelu --loss=softmax_cross_entropy \
      --optimizer=adamw --learning-rate=0.003 --layer-norm --dropout=0.2 \
      --clip-norm=0.5 "${common[@]}"
    check "$strategy $mesh, bf16, integers" 6,10,7,4 16 1 integers bit-equal \
      --activation=relu --loss=mse --optimizer=sgd --learning-rate=0.125 \
      "${common[@]}"
  done
done
echo "$ran of $number cases ran, $failed failed"
[ "$ran" -gt 0 ] && [ "$failed" -eq 0 ]
