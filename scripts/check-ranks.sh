#!/usr/bin/env bash
# Several processes with a device each train what one process trains on the
# emulated GPU, to the same bits, and predict the same: driver, cuBLASLt and NCCL are
# the fake of runtime/test/fake, whose collectives really happen between processes.
# And processes that are missing, killed or stopped are named by the others. Where
# torchrun is on the path, it starts processes again, too.
#
#   scripts/check-ranks.sh [--pipelines]
#
# With --pipelines each process trains the program of its pipeline rank.
source "$(dirname "$0")/common.sh"
source scripts/free-port.sh
case "$build" in /*) bin=$build/bin ;; *) bin=$PWD/$build/bin ;; esac
PATH=$bin:$PATH
work=$(mktemp -d)
running=()
trap 'jobs -p | xargs -r kill -9 2>/dev/null || true; rm -rf "$work"' EXIT
export TMPDIR=$work MASTER_ADDR=127.0.0.1
export SHARDC_LIBCUDA=$bin/shardc-rt-fake.so
export SHARDC_LIBCUBLASLT=$SHARDC_LIBCUDA SHARDC_LIBNCCL=$SHARDC_LIBCUDA
cases=0 failed=0
port=
flags=() # Further ones of shardc-compile.

# start LAUNCHER SIZE RANK FLAG...: a process in the background, as the launcher
# would start it; its number is $!.
start() {
  local launcher=$1 size=$2 rank=$3
  shift 3
  local -a variables
  case $launcher in
  torchrun) variables=(RANK="$rank" WORLD_SIZE="$size" LOCAL_RANK="$rank") ;;
  mpirun)
    variables=(OMPI_COMM_WORLD_RANK="$rank" OMPI_COMM_WORLD_SIZE="$size"
      OMPI_COMM_WORLD_LOCAL_RANK="$rank")
    ;;
  srun)
    variables=(SLURM_PROCID="$rank" SLURM_STEP_NUM_TASKS="$size"
      SLURM_LOCALID="$rank")
    ;;
  esac
  env MASTER_PORT=$port "${variables[@]}" \
    SHARDC_FAKE_KERNELS="${kernels:-$work/kernels.so}" \
    shardc-run "${plan:-$work/cuda.shardc}" --device=cuda --data=digits \
    --seed="${seed:-3}" "$@" &>"$work/said.$rank" &
  running+=($!)
}

fail() {
  failed=$((failed + 1))
  printf 'FAILED: %s\n' "$1"
  tail -n 3 "$work"/said.* 2>/dev/null
}

# ended RANK...: waits for these of `running`; their exit codes.
ended() {
  codes=()
  for rank in "$@"; do
    wait "${running[$rank]}" 2>/dev/null && codes+=(0) || codes+=($?)
  done
}

losses() { sed 's/.*"loss":\([^,}]*\).*/\1/' "$1"; }

compile() {
  shardc-compile "$1" "${flags[@]}" --target=emulated-gpu -o "$work/emulated.shardc" &&
    shardc-compile "$1" "${flags[@]}" --target=cuda:sm_90 -o "$work/cuda.shardc" &&
    extract-code "$work/emulated.shardc" "$work/kernels.so"
} &>"$work/log"

# train LAUNCHER SIZE MODEL WHAT: the same losses, parameters and evaluation.
train() {
  local launcher=$1 size=$2 model=$3 rank
  local what="$size ranks of $launcher, $4"
  cases=$((cases + 1)) port=$(freePort) running=()
  # GEMMs of the library are summed in its own order.
  local -a reference=("$work/emulated.shardc")
  [ "${library:-0}" = 0 ] || reference=("$work/cuda.shardc" --device=cuda --gpus=1)
  if ! compile "$model" || ! SHARDC_FAKE_KERNELS="$work/kernels.so" \
    shardc-run "${reference[@]}" --data=digits --seed=3 --steps=8 \
    --metrics="$work/emulated.jsonl" --save-params="$work/emulated.npz" \
    >"$work/emulated.out" 2>&1; then
    fail "$what: does not train in one process"
    return
  fi
  rm -f "$work"/{cuda.jsonl,cuda.npz,trace.json,said.*}
  for ((rank = 0; rank < size; ++rank)); do
    start "$launcher" "$size" "$rank" --steps=8 --deadline=60 \
      --tune-gemms="$work/gemms.txt" --trace="$work/trace.json" \
      --metrics="$work/cuda.jsonl" --save-params="$work/cuda.npz"
  done
  ended $(seq 0 $((size - 1)))
  if [[ "${codes[*]}" =~ [1-9] ]]; then
    fail "$what: exit codes ${codes[*]}"
  elif ! cmp -s <(losses "$work/emulated.jsonl") <(losses "$work/cuda.jsonl") ||
    ! cmp -s "$work/emulated.npz" "$work/cuda.npz" ||
    ! cmp -s <(grep ^evaluation "$work/emulated.out") \
      <(grep ^evaluation "$work/said.0"); then
    fail "$what: other numbers"
  elif ! SHARDC_FAKE_KERNELS="$work/kernels.so" shardc-run "$work/cuda.shardc" --device=cuda \
    --gpus=1 --data=digits --steps=1 --json >"$work/summary.json" 2>"$work/log" ||
    ! python3 test/Integration/Inputs/check_trace.py "$work/trace.json" "$work/summary.json" \
      "$size" &>>"$work/log"; then
    tail -n 3 "$work/log"
    fail "$what: the trace does not hold together"
  elif [ -s "$work/said.1" ]; then
    fail "$what: rank 1 speaks as well"
  elif compgen -G "$work/shardc-fake-*" >/dev/null; then
    fail "$what: messages of communicators are left over"
  fi
}

# predict LAUNCHER SIZE WHAT: for the model and the parameters of the last `train`,
# the predictions of one process, of a number of rows that is no multiple of the batch.
predict() {
  local launcher=$1 size=$2 rank
  local what="$size ranks of $launcher predict, $3"
  cases=$((cases + 1)) port=$(freePort) running=()
  SHARDC_FAKE_KERNELS="$work/kernels.so" shardc-run "$work/emulated.shardc" --data=digits \
    --load-params="$work/emulated.npz" --predict="$work/emulated.out.npz" &>"$work/log"
  rm -f "$work"/{cuda.out.npz,said.*}
  for ((rank = 0; rank < size; ++rank)); do
    start "$launcher" "$size" "$rank" --deadline=60 \
      --load-params="$work/emulated.npz" --predict="$work/cuda.out.npz"
  done
  ended $(seq 0 $((size - 1)))
  if [[ "${codes[*]}" =~ [1-9] ]]; then
    fail "$what: exit codes ${codes[*]}"
  elif ! grep -qF 'f32[1437,10] in' "$work/said.0" ||
    ! cmp -s "$work/emulated.out.npz" "$work/cuda.out.npz"; then
    fail "$what: other predictions"
  fi
}

# expect WHAT RANK CODE TEXT...: a process ends with a code and says why, in one of
# these ways.
expect() {
  local what=$1 rank=$2 code=$3
  shift 3
  cases=$((cases + 1))
  ended "$rank"
  if [ "${codes[0]}" -ne "$code" ] ||
    ! printf '%s\n' "$@" | grep -qF -f - "$work/said.$rank"; then
    fail "$what: exit code ${codes[0]} instead of $code, or none of: $*"
  fi
}

# begin FLAG...: two ranks that train for long, and have begun to.
begin() {
  port=$(freePort) running=()
  rm -f "$work"/{steps.jsonl,said.*}
  for rank in 0 1; do
    start torchrun 2 $rank --steps=1000000 --metrics="$work/steps.jsonl" "$@"
  done
  for _ in $(seq 300); do
    [ -s "$work/steps.jsonl" ] && return
    sleep 0.1
  done
}

# killAndStop: one of the two, and what the other says of it.
killAndStop() {
  begin
  kill -9 "${running[1]}"
  expect 'a rank is killed' 0 6 "rank 1 on $(hostname) has gone"
  begin
  kill -9 "${running[0]}"
  expect 'rank 0 is killed' 1 6 'rank 0'
  # It is there and says nothing: what waits has a deadline, be it a step or, where
  # the other was stopped between two steps, the loss of the last one.
  export SHARDC_FAKE_PATIENCE_MS=500
  begin --deadline=2
  kill -STOP "${running[1]}"
  expect 'a rank is stopped' 0 6 'rank 0 of 2: a run of "train_step"' \
    'rank 0 of 2: reading loss: rank 1 of 2 is not there after 2s'
  kill -9 "${running[1]}"
  unset SHARDC_FAKE_PATIENCE_MS
}

# restarts: all processes are started again when one is killed, twice, as by
# torchrun --max-restarts; the losses are those of a training without an end.
restarts() {
  local try rank preload=
  cases=$((cases + 1))
  rm -rf "$work/c" "$work"/*.jsonl
  SHARDC_FAKE_KERNELS="$work/kernels.so" shardc-run "$work/emulated.shardc" \
    --data=digits --seed=3 --steps=40 --metrics="$work/emulated.jsonl" &>"$work/log"
  for try in 1 2 3 4; do
    port=$(freePort) running=()
    [ $try -gt 2 ] || preload=$bin/fail-writes.so
    for rank in 0 1; do
      LD_PRELOAD=$preload FAIL_BY=kill FAIL_AT=60 TORCHELASTIC_RESTART_COUNT=$((try - 1)) \
        start torchrun 2 $rank --steps=40 --checkpoint-dir="$work/c" \
        --checkpoint-every=4 --resume=if-any --metrics="$work/cuda.jsonl"
    done
    ended 0 1
    [[ "${codes[*]}" =~ [1-9] ]] || break
    preload=
  done
  if [ $try -ne 3 ] || ! cmp -s <(losses "$work/emulated.jsonl") <(losses "$work/cuda.jsonl"); then
    fail "restarts: try $try, exit codes ${codes[*]}, or other losses"
  fi
}

# restartedByTorchrun: the same by torchrun itself, which starts both processes again
# when one is killed, in the first two tries here.
restartedByTorchrun() {
  cases=$((cases + 1))
  rm -rf "$work/c" "$work/cuda.jsonl"
  cat >"$work/try" <<'END'
#!/usr/bin/env bash
[ "$TORCHELASTIC_RESTART_COUNT" -ge 2 ] || export LD_PRELOAD=$KILLER FAIL_BY=kill FAIL_AT=60
echo "$TORCHELASTIC_RESTART_COUNT" >>"$TRIES"
exec shardc-run "$@"
END
  chmod +x "$work/try"
  : >"$work/tries"
  if ! SHARDC_FAKE_KERNELS="$work/kernels.so" KILLER=$bin/fail-writes.so TRIES=$work/tries \
    torchrun --no-python --nproc-per-node=2 --max-restarts=3 --master-addr=127.0.0.1 \
    --master-port="$(freePort)" "$work/try" "$work/cuda.shardc" --device=cuda --data=digits \
    --seed=3 --steps=40 --checkpoint-dir="$work/c" --checkpoint-every=4 --resume=if-any \
    --metrics="$work/cuda.jsonl" &>"$work/said.torchrun" ||
    [ "$(sort "$work/tries" | xargs)" != "0 0 1 1 2 2" ] ||
    ! cmp -s <(losses "$work/emulated.jsonl") <(losses "$work/cuda.jsonl"); then
    fail "torchrun: tries $(sort "$work/tries" | xargs), or other losses"
  fi
}

finish() {
  echo "$cases cases; $failed failed"
  [ "$failed" -eq 0 ]
  exit
}

launchers=(torchrun mpirun srun)
number=0

# generate STRATEGY MESH SCHEDULE FLAG...: a model with a pipeline.
generate() {
  local strategy=$1 mesh=$2 schedule=$3 chunks=1
  shift 3
  [ "$schedule" != interleaved ] || chunks=2
  [ $# -gt 0 ] || set -- --layers=64,33,65,33,10 --batch-size=96 --dropout=0.1
  shardc-gen --strategy="$strategy" --mesh="$mesh" --pipeline-schedule="$schedule" \
    --virtual-stages=$chunks --microbatches=4 --activation=gelu \
    --loss=softmax_cross_entropy --optimizer=adamw --clip-norm=0.5 "$@" -o "$work/model.mlir"
}

# compareWithOneDevice WHAT SIZE: processes that compile the model and train
# beside the program of one device.
compareWithOneDevice() {
  local what=$1 size=$2 rank
  cases=$((cases + 1)) port=$(freePort) running=()
  compile "$work/model.mlir"
  shardc-compile "$work/model.mlir" --stages=0 --microbatches=1 \
    --mesh=data=1 --target=emulated-gpu -o "$work/single.shardc" &>"$work/log"
  extract-code "$work/single.shardc" "$work/single.so"
  rm -f "$work"/said.*
  for ((rank = 0; rank < size; ++rank)); do
    kernels=$work/kernels.so:$work/single.so plan=$work/model.mlir \
      start torchrun "$size" "$rank" --steps=4 --deadline=60 --check-reference
  done
  ended $(seq 0 $((size - 1)))
  if [[ "${codes[*]}" =~ [1-9] ]] ||
    ! grep -qE '^reference +(bit-equal|agrees) over 4 steps' "$work/said.0"; then
    fail "$what beside one device: exit codes ${codes[*]}"
  fi
}

pipelines() {
  local schedule strategy mesh size run
  # The bits of the emulated GPU, the same for every schedule.
  for schedule in gpipe 1f1b zero-bubble; do
    generate pp stage=2 $schedule
    train "${launchers[$((number++ % 3))]}" 2 "$work/model.mlir" "pp, $schedule"
    mv "$work/cuda.npz" "$work/$schedule.npz"
    if ! cmp -s "$work/gpipe.npz" "$work/$schedule.npz"; then
      fail "pp, $schedule: not the bits of gpipe"
    fi
  done
  compareWithOneDevice pp 2
  for run in "pp stage=4 1f1b 4" "dp+pp stage=2,data=2 1f1b 4" \
    "tp+pp stage=2,model=2 zero-bubble 4" "fsdp+pp stage=2,data=2 interleaved 4" \
    "zero1+pp stage=2,data=2 gpipe 4"; do
    read -r strategy mesh schedule size <<<"$run"
    generate "$strategy" "$mesh" "$schedule"
    train "${launchers[$((number++ % 3))]}" "$size" "$work/model.mlir" \
      "$strategy on $mesh, $schedule"
  done
  predict torchrun 4 'a pipeline'
  generate fsdp+pp stage=2,data=2 zero-bubble
  compareWithOneDevice fsdp+pp 4
  # A process with several GPUs, also with devices of two pipeline ranks.
  export SHARDC_FAKE_GPUS=4
  train torchrun 2 "$work/model.mlir" 'a pipeline, 2 GPUs each'
  generate dp+pp stage=2,data=3 1f1b
  SHARDC_FAKE_GPUS=6
  train torchrun 3 "$work/model.mlir" 'a process with devices of both ranks'
  unset SHARDC_FAKE_GPUS
  flags=(--dtype=bf16)
  generate fsdp+pp stage=2,data=2 1f1b
  train mpirun 4 "$work/model.mlir" 'a pipeline in bf16'
  flags=()
  # GEMMs of the library, which rank 0 times for both.
  generate pp stage=2 1f1b --layers=64,384,256,10 --batch-size=512
  library=1 train torchrun 2 "$work/model.mlir" 'a pipeline with GEMMs'
  generate pp stage=2 1f1b
  compile "$work/model.mlir"
  killAndStop
  port=$(freePort) running=()
  for rank in 0 1 2; do start mpirun 3 $rank; done
  expect 'two stages in 3 processes' 0 2 'which 3 processes cannot hold as many each'
  ended 1 2
}

if [ "${1:-}" = --pipelines ]; then
  pipelines
  finish
fi

for strategy in dp zero2 fsdp tp dp+tp fsdp+tp hsdp; do
  case $strategy in
  *+tp) meshes=(data=2,model=2) ;;
  hsdp) meshes=(replica=2,shard=2) ;;
  tp) meshes=(model=2) ;;
  dp | zero2) meshes=(data=4) ;;
  *) meshes=(data=2 data=3) ;;
  esac
  for mesh in "${meshes[@]}"; do
    # Uneven dimensions: shards that go through scratch memory.
    shardc-gen --layers=64,33,65,10 --batch-size=96 --strategy="$strategy" \
      --mesh="$mesh" --activation=gelu --loss=softmax_cross_entropy \
      --optimizer=adamw --clip-norm=0.5 --dropout=0.1 -o "$work/model.mlir"
    train "${launchers[$((number++ % 3))]}" \
      "$(($(sed 's/[a-z]*=//g; s/,/*/g' <<<"$mesh")))" "$work/model.mlir" \
      "$strategy on $mesh"
    [ "$strategy" != fsdp+tp ] || predict mpirun 4 "$strategy"
  done
done

# Copies of parameters in bf16, which each rank rounds by itself.
flags=(--dtype=bf16)
for strategy in zero1 fsdp; do
  shardc-gen --layers=64,33,65,10 --batch-size=96 --strategy=$strategy \
    --mesh=data=2 --activation=gelu --loss=softmax_cross_entropy \
    --optimizer=adamw -o "$work/model.mlir"
  train torchrun 2 "$work/model.mlir" "$strategy in bf16"
done
flags=()

# GEMMs of the library, which rank 0 times for all.
shardc-gen --layers=64,384,256,10 --batch-size=128 --strategy=fsdp \
  --mesh=data=2 --activation=relu --loss=softmax_cross_entropy \
  --optimizer=sgd --learning-rate=0.05 -o "$work/model.mlir"
library=1 train torchrun 2 "$work/model.mlir" 'GEMMs of the library'
if ! grep -q '^Fake GPU; driver 13000; cuBLASLt 130000; m=' \
  "$work/gemms.txt" 2>/dev/null; then
  fail 'no GEMMs were timed'
fi

# A process with several GPUs, and several of them.
export SHARDC_FAKE_GPUS=4
for size in 1 2; do
  shardc-gen --layers=64,33,65,10 --batch-size=96 --strategy=fsdp+tp \
    --mesh=data=2,model=2 --activation=gelu --loss=softmax_cross_entropy \
    --optimizer=adamw -o "$work/model.mlir"
  train torchrun $size "$work/model.mlir" "$((4 / size)) GPUs each"
done
unset SHARDC_FAKE_GPUS

shardc-gen --layers=64,33,10 --batch-size=96 --strategy=dp --mesh=data=2 \
  --activation=relu --loss=softmax_cross_entropy --optimizer=sgd \
  --learning-rate=0.05 -o "$work/model.mlir"
compile "$work/model.mlir"

killAndStop
if [ -e "$bin/fail-writes.so" ]; then
  restarts
  ! command -v torchrun >/dev/null || restartedByTorchrun
fi

port=$(freePort) running=()
start torchrun 2 0 --deadline=1
expect 'a rank is missing' 0 6 'rank 1 of 2 is not there after 1s'
running=()
start torchrun 2 1 --deadline=1
running=(none "${running[@]}")
expect 'rank 0 is missing' 1 6 'waiting for rank 0'
running=()
port=$(freePort)
for rank in 0 1 2; do start mpirun 3 $rank; done
expect 'a mesh of 2 on 3 processes' 0 2 'which 3 processes cannot hold as many each'
ended 1 2
port=$(freePort) running=()
start torchrun 2 0
seed=4 start torchrun 2 1
expect 'other seeds' 1 2 'has --seed=4, and rank 0 has --seed=3'
ended 0
running=(none none)
start torchrun 2 2
expect 'no such rank' 2 1 'RANK=2 contradicts WORLD_SIZE=2'
finish
