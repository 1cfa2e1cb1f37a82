#!/usr/bin/env bash
# Trains again and again while processes are killed, stopped and asked to end at
# random, and resumes with another number of them: each training has to end with
# the losses, bit for bit, of one that nothing happened to, and with its parameters.
#
#   scripts/soak.sh [--minutes=MINUTES] [--seed=SEED]
#
# Begins no other training after so many minutes, by default 0.1. An attempt
# whose processes do not end within two minutes is a failure. The seed decides what
# happens, but not what the processes are doing then. Exit code 77 where there is no MPI.
minutes=0.1 seed=$RANDOM
for argument in "$@"; do
  case $argument in
  --minutes=*) minutes=${argument#*=} ;;
  --seed=*) seed=${argument#*=} ;;
  *)
    echo "unknown argument $argument; expected --minutes=MINUTES or --seed=SEED"
    exit 1
    ;;
  esac
done
source "$(dirname "$0")/common-mpi.sh"
faults=$build/bin/fail-writes.so
RANDOM=$seed
end=$(($(date +%s%N) / 1000000 + $(awk "BEGIN { print int($minutes * 60000) }")))
echo "seed $seed"

steps=1500
shardc-gen --layers=64,33,65,10 --batch-size=96 --strategy=fsdp+tp --mesh=data=4,model=2 \
  --loss=softmax_cross_entropy --optimizer=adamw --dropout=0.1 \
  --schedule=cosine,warmup_steps=100,decay_steps=$steps -o model.mlir
shardc-compile model.mlir -o model.shardc &>said
run=(shardc-run model.shardc --data=digits --seed=3 --steps=$steps --log-every=0)
"${run[@]}" --ordered-sums --metrics=one.jsonl --save-params=one.npz &>said

# ranks: the processes of the run that has been started.
ranks() { pgrep -P "$launcher" || true; }

# disturb KIND: something happens to a process of the run, or to all of them.
disturb() {
  local victims=() size
  mapfile -t victims < <(ranks)
  size=${#victims[@]}
  [ "$size" -gt 0 ] || return 0
  local victim=${victims[$((RANDOM % size))]}
  case $1 in
  kill) kill -KILL "$victim" ;;
  'kill all') kill -KILL "${victims[@]}" ;;
  stop) kill -STOP "$victim" ;;
  term) kill -TERM "$victim" ;;
  esac 2>/dev/null || true
  [ "$1" != stop ] || stopped=$victim
}

# stateOf: "some" of the processes of the run are there, or "none" but for those that
# have ended and that the launcher has to take notice of; nothing: there are none at all.
stateOf() {
  ps -o stat= --ppid "$launcher" | awk '/^Z/ { s = s ? s : "none" } !/^Z/ { s = "some" } END { print s }'
}

# finish: waits for the launcher; `code` is its exit code. Open MPI 4.1 does not always
# notice that its processes have ended, and waits forever: this is no fault of theirs. It
# is 124 if processes have not ended after two minutes; each step has a deadline of three
# seconds.
finish() {
  local tick ended=0
  for tick in $(seq 2400); do
    if ! kill -0 "$launcher" 2>/dev/null; then
      wait "$launcher" || code=$?
      return
    fi
    sleep 0.05
    [ $((tick % 20)) -eq 0 ] || continue
    ended=$((ended + 1))
    [ "$(stateOf)" = none ] || ended=0
    [ $ended -lt 10 ] || break
  done
  code=124
  if [ $ended -eq 10 ]; then
    echo 'mpirun has not noticed for ten seconds that all processes have ended: it is killed'
    code=137
  fi
  ps -o pid,ppid,stat,etimes,args --pid "$launcher" --ppid "$launcher" >>said || true
  # shellcheck disable=SC2046
  kill -KILL "$launcher" $(ranks) 2>/dev/null || true
  wait "$launcher" 2>/dev/null || true
}

# attempt SIZE KIND SECONDS: goes on with so many processes until something happens.
attempt() {
  local size=$1 kind=$2 seconds=$3 command=()
  stopped= code=0
  if [ "$kind" = 'kill in a write' ]; then
    command=(env "LD_PRELOAD=$faults" FAIL_BY=kill "FAIL_AT=$((1 + RANDOM % 60))")
  fi
  mpirun -n "$size" "${command[@]}" "${run[@]}" --checkpoint-dir=c \
    --checkpoint-every=50 --keep=2 --resume=if-any --metrics=many.jsonl \
    --save-params=many.npz --heartbeat=200ms --deadline=3 &>said &
  launcher=$!
  case $kind in
  nothing | 'kill in a write') ;;
  *)
    sleep "$seconds"
    disturb "$kind"
    ;;
  esac
  finish
  [ -z "$stopped" ] || kill -KILL "$stopped" 2>/dev/null || true
}

kinds=(kill kill 'kill all' stop term)
[ ! -e "$faults" ] || kinds+=('kill in a write' 'kill in a write')
disturbances=0
while [ "$cases" -eq 0 ] || [ $(($(date +%s%N) / 1000000)) -lt "$end" ]; do
  cases=$((cases + 1))
  rm -rf c many.*
  # What happens more often would never end.
  for number in 1 2 3 4 5 6 last; do
    size=$((1 + RANDOM % 4)) kind=${kinds[$((RANDOM % ${#kinds[@]}))]}
    seconds=$((RANDOM % 2)).$((RANDOM % 10))
    [ $number != last ] || kind=nothing
    attempt $size "$kind" $seconds
    at=$(shardc-checkpoint list c 2>/dev/null | awk '/^ *[0-9]/ { at = $1 } END { print at }' || true)
    printf 'training %d: %d processes, %s: exit code %d, at step %s of %d\n' \
      $cases $size "$kind" $code "${at:-0}" $steps
    if compgen -G 'c/step-*[0-9]' >/dev/null &&
      ! shardc-checkpoint verify c >>said 2>&1; then
      fail "training $cases: a checkpoint is not whole"
    fi
    [ "$kind" = nothing ] || disturbances=$((disturbances + 1))
    # A run that a signal ended saves parameters, too.
    [ "${at:-0}" -ne $steps ] || [ "$code" -ne 0 ] || break
    # Ended by a lost process (6, or mpirun's 137), as in the loop of docs/Hosts.md; by
    # a signal that saved all (0) or came before there was something to save (143).
    case $code in
    0 | 6 | 137 | 143) ;;
    124)
      fail "training $cases: processes have not ended two minutes after '$kind'"
      break
      ;;
    *)
      fail "training $cases: exit code $code"
      break
      ;;
    esac
  done
  if ! cmp one.npz many.npz || ! cmp <(losses one.jsonl) <(losses many.jsonl); then
    fail "training $cases: other numbers"
  fi
done
echo "$cases trainings with $disturbances disturbances; $failed failed"
[ "$failed" -eq 0 ]
