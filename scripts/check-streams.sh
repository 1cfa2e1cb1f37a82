#!/usr/bin/env bash
# Plans for a GPU, of every example and of every strategy, in one bucket and in
# many, at once and in microbatches: all accesses are ordered, and without any
# one of the events they are not. Then steps in many orders that the events allow,
# with the kernels of an emulated GPU: the same bits.
#
#   scripts/check-streams.sh [MODULUS REMAINDER]
#
# With a modulus m and a remainder r only every m-th case, starting with the
# r-th, runs.
source "$(dirname "$0")/common.sh"
case "$build" in /*) bin=$build/bin ;; *) bin=$PWD/$build/bin ;; esac
PATH=$bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 shuffled=0
takeEvery "$@"

# check FLAG-OR-MODEL...
check() {
  if ! isTaken; then return; fi
  if ! check-streams "$@" >"$work/log" 2>&1; then
    failed=$((failed + 1))
    printf 'FAILED: check-streams %s\n%s\n' "$*" "$(tail -n 5 "$work/log")"
  fi
  tail -n 1 "$work/log" >>"$work/all"
}

# shuffle FLAG-OR-MODEL...
shuffle() {
  if ! isTaken; then return; fi
  shuffled=$((shuffled + 1))
  if ! shuffle-streams "$@" --count=8 >"$work/log" 2>&1; then
    failed=$((failed + 1))
    printf 'FAILED: shuffle-streams %s\n%s\n' "$*" "$(tail -n 5 "$work/log")"
  fi
}

for model in examples/*.mlir test/golden/*/model.mlir; do
  check "$model" --ignore-expect
done
for strategy in none dp zero1 zero2 fsdp hsdp tp dp+tp fsdp+tp hsdp+tp; do
  case $strategy in
  hsdp*) mesh=replica=2,shard=2,model=2 ;;
  *) mesh=data=4,model=2 ;;
  esac
  model=$work/$strategy.mlir
  shardc-gen --layers=33,64,65,64,10 --batch-size=96 --strategy=$strategy \
    --mesh=$mesh --activation=gelu --loss=softmax_cross_entropy \
    --optimizer=adamw --clip-norm=0.5 --layer-norm --dropout=0.1 -o "$model"
  for bucket in 0 4096; do
    for microbatches in 1 4; do
      check "$model" --bucket-bytes=$bucket --microbatches=$microbatches
    done
  done
  check "$model" --bucket-bytes=4096 --regather
  check "$model" --bucket-bytes=4096 --dtype=bf16
  shuffle "$model" --bucket-bytes=4096
  shuffle "$model" --regather
  shuffle "$model" --bucket-bytes=4096 --dtype=bf16
done
# The programs of a pipeline's ranks.
for run in "pp stage=2 1f1b 1" "dp+tp+pp stage=3,data=2,model=2 zero-bubble 1" \
  "fsdp+pp stage=2,data=2 interleaved 2"; do
  read -r strategy mesh schedule chunks <<<"$run"
  shardc-gen --layers=33,64,65,64,10 --batch-size=96 --strategy=$strategy \
    --mesh=$mesh --pipeline-schedule=$schedule --virtual-stages=$chunks \
    --microbatches=6 --activation=gelu --loss=softmax_cross_entropy \
    --optimizer=adamw --clip-norm=0.5 --layer-norm --dropout=0.1 -o "$work/pp.mlir"
  check "$work/pp.mlir"
done
# It notices what events are for.
if shuffle-streams "$work/fsdp.mlir" --bucket-bytes=4096 --plant \
    &>"$work/log" || ! grep -q 'gives other numbers' "$work/log"; then
  failed=$((failed + 1))
  echo "FAILED: nobody misses the events of fsdp"
fi
awk -v failed=$failed -v shuffled=$shuffled '
  { programs += $1; commands += $3; pairs += $5; events += $14; extra += $16 }
  END { printf "%d programs, %d commands, ", programs, commands
        printf "%d pairs that may run at the same time, ", pairs
        printf "%d events, %d superfluous; ", events, extra
        printf "%d plans in 8 orders each; %d failed\n", shuffled, failed }
' "$work/all"
[ "$failed" -eq 0 ]
