#!/usr/bin/env bash
# Everything that has to be seen on a machine with a GPU, in one run of less than
# eight minutes, without a network, a compiler or a toolkit: a line per check,
# then figures. What is wrong is said, the rest is run all the same, and the exit
# code is 1.
#
#   scripts/gpu-check.sh --pack FOLDER               # here: binaries, plans, numbers
#   FOLDER/gpu-check.sh [FLAG...]                    # there; less than 60 MiB
#   scripts/gpu-check.sh --estimates LOGS            # here again: steps as estimated
#
# --numbers and --figures run these alone: what trains and compares, what is
# measured. --logs=FOLDER (FOLDER/logs) keeps what each check and each figure
# printed, the machine file of the GPU and the steps that were measured, of which
# --estimates makes a table.
#
# With --pack-fake the folder has the fake of the vendor's libraries and
# is run against it: that shows that the script works, and nothing of a GPU.
# Driver, cuBLASLt and NCCL are found as by shardc-run (SHARDC_LIBCUDA, …), JAX by
# the Python that SHARDC_JAX_PYTHON names, or else python3.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Model, then what shardc-gen makes it from.
models=(
  "notebook --layers=10,32,16,1 --batch-size=64 --loss=mse --optimizer=adam --activation=relu"
  "digits --layers=64,128,64,10 --batch-size=96 --loss=softmax_cross_entropy --optimizer=adamw --activation=relu"
  "digits-bf16 --layers=64,128,64,10 --batch-size=96 --loss=softmax_cross_entropy --optimizer=momentum --activation=relu"
  "zero-rows --layers=320,320,320 --batch-size=96 --loss=softmax_cross_entropy --optimizer=sgd --learning-rate=0.1 --activation=relu"
  "wide --layers=784,1024,1024,10 --batch-size=256 --loss=softmax_cross_entropy --optimizer=sgd --learning-rate=0.01 --activation=gelu"
)
# Strategy and mesh.
runs=("none data=1" "dp data=8" "fsdp data=8" "tp model=8" "dp+tp data=4,model=2")
# Of digits and wide, on virtual devices: measured as well.
virtualRuns=("dp data=8" "fsdp data=8" "tp model=8")
rankRuns=("fsdp data=2" "fsdp+tp data=2,model=2")
# Pipelines, with their schedule: of digits, in as many processes as devices.
pipelineRuns=("pp stage=2 1f1b" "fsdp+pp stage=2,data=2 zero-bubble")

# Plans of one device that are measured and train nothing: name, what shardc-gen
# makes the model from, and behind the bar what it is compiled with.
measured=(
  "large-tf32 --layers=4096,16384,4096 --batch-size=8192 --loss=mse --optimizer=sgd --activation=relu | --matmul-precision=tf32"
  "large-bf16 --layers=4096,16384,4096 --batch-size=8192 --loss=mse --optimizer=sgd --activation=relu | --dtype=bf16"
  "adam --layers=2048,4096,2048 --batch-size=64 --loss=mse --optimizer=adam --activation=relu |"
  "middle-f32 --layers=1024,4096,1024 --batch-size=1024 --loss=mse --optimizer=sgd --activation=relu |"
  "middle-tf32 --layers=1024,4096,1024 --batch-size=1024 --loss=mse --optimizer=sgd --activation=relu | --matmul-precision=tf32"
  "middle-bf16 --layers=1024,4096,1024 --batch-size=1024 --loss=mse --optimizer=sgd --activation=relu | --dtype=bf16"
  "deep --layers=$(printf '256,%.0s' {1..24})256 --batch-size=512 --loss=mse --optimizer=momentum --activation=relu |"
  "odd --layers=61,127,31,7 --batch-size=251 --loss=softmax_cross_entropy --optimizer=sgd --activation=relu |"
)

# What a name of `measured` stands for.
measuredAs() {
  local entry
  for entry in "${measured[@]}"; do
    [ "${entry%% *}" != "$1" ] || echo "${entry#* }"
  done
}

dataOf() {
  case $1 in
  notebook) echo synthetic:quadratic ;;
  digits*) echo digits:train ;;
  # Arguments of relus that are exactly 0.
  zero-rows | wide) echo "$2/data/$1.npz" ;;
  esac
}

# Strategies and meshes of a model, a line each.
runsOf() {
  case $1 in
  zero-rows) printf '%s\n' "none data=1" "dp data=8" ;;
  *) printf '%s\n' "${runs[@]}" ;;
  esac
}

# What else a model is compiled with.
dtypeOf() { [[ $1 != *-bf16 ]] || echo --dtype=bf16; }

# How far losses and parameters may be from the CPU's: sums in another order may
# round to another number of bf16.
tolerancesOf() { [[ $1 == *-bf16 ]] && echo 1e-2 3e-2 || echo 1e-5 1e-4; }

nameOf() { echo "$1-$2-${3//[=,]/}"; }

# The number of devices of a mesh.
sizeOf() { echo $(($(sed 's/[a-z]*=//g; s/,/*/g' <<<"$1"))); }

if [ "${1:-}" = --pack ] || [ "${1:-}" = --pack-fake ]; then
  [ $# -eq 2 ] || { echo "usage: gpu-check.sh $1 FOLDER" >&2; exit 1; }
  isFake=0
  [ "$1" = --pack ] || isFake=1
  source "$here/gpu-pack.sh"
  pack "$2" $isFake
  exit
fi
if [ "${1:-}" = --estimates ]; then
  [ $# -eq 2 ] || { echo "usage: gpu-check.sh --estimates LOGS" >&2; exit 1; }
  source "$here/gpu-estimates.sh"
  printEstimates "$2"
  exit
fi
usage() {
  echo "usage: gpu-check.sh --pack FOLDER, then FOLDER/gpu-check.sh [--numbers | --figures] [--logs=FOLDER]" >&2
  exit 1
}
[ -d "$here/plans" ] || usage
parts=(numbers measurements) logs=$here/logs
for argument in "$@"; do
  case $argument in
  --numbers) parts=(numbers) ;;
  --figures) parts=(measurements) ;;
  --logs=*) logs=${argument#*=} ;;
  *) usage ;;
  esac
done
logs=$(mkdir -p "$logs" && cd "$logs" && pwd)

# --- There: running -----------------------------------------------------------

callersPath=$PATH callersLibraries=${LD_LIBRARY_PATH:-}
PATH=$here/bin:$PATH
export SHARDC_DATA_DIR=$here/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
isFake=0
if [ -d "$here/fake" ]; then
  isFake=1
  echo 'FAKE: no GPU is involved, and figures mean nothing'
  export SHARDC_LIBCUDA=$here/fake/shardc-rt-fake.so
  export SHARDC_LIBCUBLASLT=$SHARDC_LIBCUDA SHARDC_LIBNCCL=$SHARDC_LIBCUDA
fi
passed=0 notRun=0 wrong=0

# The kernels of a plan, which the fake has no other way to know.
kernelsOf() {
  [ $isFake = 0 ] || export SHARDC_FAKE_KERNELS=$here/fake/$1.so
}

# wrongLine WHAT LOG
wrongLine() {
  wrong=$((wrong + 1))
  printf 'WRONG    %s\n' "$1"
  tail -n 15 "$2" | sed 's/^/         /'
}

# keepLog WHAT LOG
keepLog() {
  cp "$2" "$logs/$(tr -c 'a-zA-Z0-9\n' - <<<"$1" | cut -c1-80).log"
}

# Checks run side by side, in folders of their own, and have their lines in order.
checks=() printed=0
parallel=$(($(nproc) / 2))
parallel=$((parallel < 1 ? 1 : parallel > 6 ? 6 : parallel))

# The lines of those that have ended, up to the first that has not.
printEnded() {
  local folder code seconds
  while [ $printed -lt ${#checks[@]} ] && [ -e "$work/$printed/result" ]; do
    folder=$work/$printed what=${checks[$printed]}
    read -r code seconds <"$folder/result"
    if [ "$code" = 0 ]; then
      passed=$((passed + 1))
      printf 'ok       %s (%d s)\n' "$what" "$seconds"
    else
      wrongLine "$what: exit code $code ($seconds s)" "$folder/log"
    fi
    keepLog "$what" "$folder/log"
    printed=$((printed + 1))
  done
}

# check WHAT COMMAND...: the command beside others, and its line when it ends.
check() {
  local folder=$work/${#checks[@]}
  mkdir "$folder"
  checks+=("$1")
  shift
  while [ "$(jobs -rp | wc -l)" -ge $parallel ]; do
    wait -n || true
    printEnded
  done
  (
    work=$folder begin=$SECONDS code=0
    "$@" &>"$folder/log" || code=$?
    echo "$code $((SECONDS - begin))" >"$folder/ended"
    mv "$folder/ended" "$folder/result"
  ) &
}

# Until every check has its line.
settle() {
  wait
  printEnded
}

skip() {
  settle
  notRun=$((notRun + 1))
  printf 'not run  %s\n' "$1"
}

# train COMMAND... -- MODEL NAME: to the CPU's losses and parameters.
train() {
  local -a runner=()
  while [ "$1" != -- ]; do
    runner+=("$1")
    shift
  done
  local model=$2 name=$3
  kernelsOf "$name"
  # shellcheck disable=SC2046
  "${runner[@]}" timeout 100 shardc-run "$here/plans/$name.shardc" \
    --device=cuda --data="$(dataOf "$model" "$here")" --steps=10 --seed=3 --gpu=0 \
    "${where[@]}" --metrics="$work/metrics.jsonl" \
    --save-params="$work/parameters.npz" &&
    compare-training "$work/metrics.jsonl" "$here/expected/$model.json" \
      "$work/parameters.npz" "$here/expected/$model.npz" $(tolerancesOf "$model")
}

# traced -- MODEL NAME: the same, and a trace of eight of the steps.
traced() {
  where+=(--trace="$work/trace.json" --trace-steps=2:9)
  train "$@" &&
    [ "$(grep -c '"name":"step [2-9]"' "$work/trace.json")" = 8 ] &&
    grep -q '"name":"stream of device.*: compute"' "$work/trace.json"
}

# traceCost PLAN DATA: how much longer recorded steps take, in three turns.
traceCost() {
  local turn steps seconds with without cost=() count=400
  [ $isFake = 0 ] || count=4
  kernelsOf "$1"
  for turn in 1 2 3; do
    for steps in 2:2 1:$count; do
      timeout 60 shardc-run "$here/plans/$1.shardc" --device=cuda --gpus=1 --data="$2" \
        --steps=$count --log-every=0 --trace="$work/cost.json" --trace-steps=$steps --json \
        2>"$work/cost.log" >"$work/cost.out" || return 1
      seconds=$(sed -n 's/^ *"seconds": *\([0-9.e+-]*\).*/\1/p' "$work/cost.out")
      [ -n "$seconds" ] || return 1
      [ $steps = 2:2 ] && without=$seconds || with=$seconds
    done
    cost+=("$(awk -v a="$with" -v b="$without" 'BEGIN { print a / b }')")
  done
  printf '%s\n' "${cost[@]}" | sort -g | sed -n 2p
}

# Several processes on one GPU: NCCL takes them for machines of their own.
onOneGpu() {
  local size=$1
  shift
  NCCL_SOCKET_IFNAME=lo NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 \
    "$here/run-ranks.sh" "$size" \
    bash -c 'export NCCL_HOSTID=gpu-check-$RANK; exec "$@"' rank "$@"
}

begin=$SECONDS
check 'GPUs are there' shardc-run --device=cuda --list-devices
settle
sed 's/^/         /' "$work/0/log"
hasNccl=1
for library in ${SHARDC_LIBNCCL:-libnccl.so.2}; do
  case $library in
  /*) [ -e "$library" ] || hasNccl=0 ;;
  *) grep -qF "$library" <<<"$(PATH=$PATH:/sbin ldconfig -p 2>/dev/null)" || hasNccl=0 ;;
  esac
done
: "${SHARDC_LIBCUDA:=libcuda.so.1}"
export SHARDC_LIBCUDA
# Numbers: collectives, training, and the kernels under compute-sanitizer.
numbers() {
  check 'conformance of collectives within a GPU' \
    timeout 200 shardc-rt-cts --gtest_filter='VirtualGpu*' --gtest_brief=1
  for size in 1 2 4; do
    what="conformance of collectives by NCCL, ranks on one GPU: $size"
    if [ $hasNccl = 0 ]; then
      skip "$what: no libnccl.so.2"
      continue
    fi
    export SHARDC_LIBNCCL=${SHARDC_LIBNCCL:-libnccl.so.2}
    filter='Nccl*'
    [ $size -gt 1 ] || filter='Nccl*/0' # The mesh of one device.
    check "$what" onOneGpu $size \
      timeout 150 shardc-rt-cts --gtest_filter="$filter" --gtest_brief=1
  done
  where=(--gpus=1)
  for model in "${models[@]}"; do
    name=${model%% *}
    mapfile -t all < <(runsOf "$name")
    for run in "${all[@]}"; do
      read -r losses parameters <<<"$(tolerancesOf "$name")"
      check "$name, $run: the CPU's losses to $losses, parameters to $parameters" \
        train -- "$name" "$(nameOf "$name" "${run% *}" "${run#* }")"
    done
  done
  for run in "${pipelineRuns[@]}"; do
    read -r strategy mesh schedule <<<"$run"
    check "digits, $strategy $mesh, $schedule, its stages on one GPU" \
      train -- digits "$(nameOf digits "$strategy" "$mesh")"
  done
  for run in 'none data=1' 'fsdp data=8'; do
    check "digits, $run: the same while steps are recorded" \
      traced -- digits "$(nameOf digits "${run% *}" "${run#* }")"
  done
  where=()
  for run in "${rankRuns[@]}" "${pipelineRuns[@]}"; do
    read -r strategy mesh schedule <<<"$run"
    size=$(sizeOf "$mesh")
    what="digits, $strategy $mesh${schedule:+, $schedule}, in $size processes"
    if [ $hasNccl = 0 ]; then
      skip "$what: no libnccl.so.2"
    else
      check "$what" train onOneGpu "$size" -- digits \
        "$(nameOf digits "$strategy" "$mesh")"
    fi
  done
  for tool in memcheck racecheck; do
    for run in "notebook none data=1" "notebook dp+tp data=4,model=2"; do
      read -r model strategy mesh <<<"$run"
      plan=$(nameOf "$model" "$strategy" "$mesh")
      if ! command -v compute-sanitizer >/dev/null; then
        skip "compute-sanitizer $tool, $plan: it is not on this machine"
        continue
      fi
      kernelsOf "$plan"
      check "compute-sanitizer $tool, $plan" timeout 100 compute-sanitizer \
        --tool $tool --error-exitcode 99 shardc-run "$here/plans/$plan.shardc" \
        --device=cuda --gpus=1 --data=synthetic:quadratic --steps=3
    done
  done
}

# figures PLAN STEPS: leaves them in `figure`. Fails, and says so, if there are none.
declare -A figure
figures() {
  figure=()
  kernelsOf "$1"
  local code=0
  timeout 120 measure-gpu "$here/plans/$1.shardc" "$2" >"$work/figures" 2>&1 || code=$?
  keepLog "figures of $1" "$work/figures"
  if [ $code != 0 ]; then
    wrongLine "figures of $1: exit code $code" "$work/figures"
    return 1
  fi
  local key value
  while read -r key value; do figure[$key]=$value; done <"$work/figures"
}

# goal WHAT VALUE LEAST
goal() {
  local reached
  reached=$(awk -v a="$2" -v b="$3" 'BEGIN { print (a + 0 >= b + 0) ? "reached" : "MISSED" }')
  [ $isFake = 0 ] || reached='of the fake'
  printf 'figure   %s: %s (goal %s: %s)\n' "$1" "$2" "$3" "$reached"
}

source "$here/gpu-peer.sh"
large=4096-16384-4096
layers=4096,16384,4096 batch=8192
[ $isFake = 0 ] || layers=256,384,256 batch=64

# Notes the step of PLAN, measured last, for the table of estimates.
noteStep() { echo "$1 ${figure[step_us]}" >>"$logs/steps"; }

# The rates and times of the GPU as a machine file.
machines() {
  local number=${#checks[@]}
  # The fake would multiply for hours.
  check 'a machine file is measured' env SHARDC_FAKE_IDLE=$isFake timeout 100 \
    shardc-run --device=cuda --gpus=1 --measure-machine="$logs/machine.json"
  settle
  sed 's/^/         /' "$work/$number/log"
  echo "         Its estimates beside the measured steps: scripts/gpu-check.sh --estimates"
  echo "         $logs, where the compiler is"
}

measurements() {
  local precision
  echo
  rm -f "$logs/steps"
  for precision in tf32 bf16; do
    figures "large-$precision" 10 || continue
    noteStep "large-$precision"
    goal "a step of $large, batch 8192, $precision: its GEMMs alone over it" \
      "${figure[gemms_ratio]}" 0.95
    against "a step of $large, batch 8192, $precision" \
      "$(peerModel "$layers" sgd $batch $precision)" run 10 1
    against "the same, JAX fed from the host as ours is" \
      "$(peerModel "$layers" sgd $batch $precision)" fed 10 1
    printf '         step %s us; to hand over its inputs takes the host %s us of it\n' \
      "${figure[step_us]}" "${figure[submit_us]}"
    check "peak memory equals the plan's, $precision: the arena has ${figure[planned]} B" \
      test "${figure[arenas]}" = "${figure[planned]}"
    settle
    # One GPU needs no NCCL, whose buffers would be among what is beside.
    printf '         beside it, and not compared: scratch %s B, %s B of contexts, code, libraries\n' \
      "${figure[scratch]}" "$(awk -v a="${figure[used]}" -v b="${figure[arenas]}" -v c="${figure[scratch]}" \
        'BEGIN { printf "%.0f", a - b - c }')"
    printf '         and whatever else uses the GPU; %s B more after the steps\n' "${figure[grown]}"
  done
  local model many=500 few=100
  [ $isFake = 0 ] || many=10 few=4
  for model in digits wide digits-bf16 zero-rows; do
    figures "$(nameOf $model none data=1)" $many || continue
    noteStep "$(nameOf $model none data=1)"
    printf 'figure   a step of %s on one device: %s us\n' $model "${figure[step_us]}"
  done
  for model in middle-{f32,tf32,bf16} deep odd; do
    figures $model $few || continue
    noteStep $model
    printf 'figure   a step of %s (%s) on one device: %s us\n' $model \
      "$(grep -o 'layers=[^ ]*' <<<"$(measuredAs $model)" | cut -c8-30)" "${figure[step_us]}"
  done
  local run name
  for model in digits wide; do
    for run in "${virtualRuns[@]}"; do
      name=$(nameOf $model "${run% *}" "${run#* }")
      figures "$name" $few || continue
      noteStep "$name"
      printf 'figure   a step of %s, %s on one GPU: %s us\n' $model "$run" "${figure[step_us]}"
    done
  done
  local cost
  if cost=$(traceCost "$(nameOf wide none data=1)" "$(dataOf wide "$here")"); then
    printf 'figure   recorded steps of wide on one device over others: %s\n' "$cost"
  else
    wrongLine 'the cost of a trace' "$work/cost.log"
  fi
  if figures "$(nameOf notebook none data=1)" 2000; then
    noteStep "$(nameOf notebook none data=1)"
    printf 'figure   a step of 10-32-16-1, one graph launch: %s us\n' "${figure[step_us]}"
    local notebook
    notebook=$(peerModel 10,32,16,1 adam 64 f32)
    against 'a step of 10-32-16-1 in a loop of jitted steps' "$notebook" run 2000 10
    against 'a step of 10-32-16-1 in a jitted loop (lax.scan)' "$notebook" scan 2000 10
  fi
  if figures adam 10; then
    noteStep adam
    goal 'the kernel of Adam: its bandwidth over that of copies' \
      "${figure[update_ratio]}" 0.85
  fi
  if figures all-reduce 10; then
    goal 'all-reduce of 8 virtual devices: the time of copies over its own' \
      "${figure[all_reduce_ratio]}" 0.5
  fi
  machines
}

for part in "${parts[@]}"; do
  "$part"
  settle
done
echo
printf '%d checks passed, %d wrong, %d not run, %d s' "$passed" "$wrong" "$notRun" \
  $((SECONDS - begin))
[ $isFake = 0 ] && echo || echo ', against the fake: nothing is known of a GPU'
[ "$wrong" = 0 ]
