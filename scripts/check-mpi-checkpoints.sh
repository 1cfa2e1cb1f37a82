#!/usr/bin/env bash
# Checkpoints of several processes are those of one, and any number of processes
# goes on from them, also after signals, damage, and faults of one of them.
#
#   scripts/check-mpi-checkpoints.sh [--every-write]
#
# --every-write kills a process at each call that writes a checkpoint, which takes
# minutes, in place of a part of them. Exit code 77 where there is no MPI.
source "$(dirname "$0")/common-mpi.sh"
case "${1-}" in
'') stride=4 ;;
--every-write) stride=1 ;;
*)
  echo "usage: $0 [--every-write]"
  exit 1
  ;;
esac
faults=$build/bin/fail-writes.so

shardc-gen --layers=64,33,65,10 --batch-size=96 --strategy=fsdp+tp \
  --mesh=data=4,model=2 --loss=softmax_cross_entropy --optimizer=adamw \
  --dropout=0.1 -o model.mlir
shardc-compile model.mlir -o model.shardc &>said
run=(shardc-run model.shardc --data=digits --log-every=0)
"${run[@]}" --seed=3 --steps=12 --ordered-sums --checkpoint-dir=one \
  --checkpoint-every=4 --metrics=one.jsonl --save-params=one.npz &>said

# check WHAT COMMAND...: the command succeeds.
check() {
  local what=$1
  shift
  cases=$((cases + 1))
  "$@" &>said || fail "$what"
}

# Whether the run that goes on in DIR, with so many processes, ends as the one that
# nothing happened to.
goesOn() {
  local folder=$1 size=$2
  rm -f many.npz
  mpirun -n "$size" "${run[@]}" --steps=12 --checkpoint-dir="$folder" \
    --resume --metrics="$folder.jsonl" --save-params=many.npz &&
    cmp one.npz many.npz && shardc-checkpoint diff one "$folder"
}

for size in 2 3; do
  check "$size processes write" mpirun -n "$size" "${run[@]}" --seed=3 \
    --steps=12 --checkpoint-dir="many$size" --checkpoint-every=4 \
    --metrics="many$size.jsonl"
  for step in 4 8 12; do
    check "$size processes write what one does" \
      shardc-checkpoint diff one/step-$step "many$size/step-$step"
  done
  check "$size processes write whole checkpoints" \
    shardc-checkpoint verify "many$size"
done

# Of columns each process has short parts of every row.
shardc-gen --layers=64,33,65,10 --batch-size=96 --strategy=tp --mesh=model=4 \
  --loss=softmax_cross_entropy --optimizer=adamw -o c.mlir
shardc-compile c.mlir -o c.shardc &>said
columns=(shardc-run c.shardc --data=digits --log-every=0 --seed=3 --steps=6 --checkpoint-every=3)
for size in 1 2 4; do
  for kind in npz safetensors; do
    rm -rf "c$size"
    check "$size processes write columns" mpirun -n "$size" "${columns[@]}" \
      --checkpoint-dir="c$size" --save-params="c$size.$kind"
    check "$size processes save columns" cmp "c1.$kind" "c$size.$kind"
    check "$size processes write the columns of one" shardc-checkpoint diff c1 "c$size"
    check "the columns of $size processes are whole" shardc-checkpoint verify "c$size"
  done
done

rm -r many3/step-12
for size in 1 2 4; do
  cp -r many3 "on$size" && cp many3.jsonl "on$size.jsonl"
  check "$size processes go on" goesOn "on$size" "$size"
  check "the metrics go on" cmp <(losses one.jsonl) <(losses "on$size.jsonl")
done
# Another mesh and strategy.
shardc-gen --layers=64,33,65,10 --batch-size=96 --strategy=zero1 --mesh=data=3 \
  --loss=softmax_cross_entropy --optimizer=adamw --dropout=0.1 -o other.mlir
check 'another mesh goes on' mpirun -n 2 shardc-run other.mlir --data=digits \
  --steps=16 --checkpoint-dir=many2 --resume --check-reference

# The last one is damaged: every process takes the one before.
printf x | dd of=many3/step-8/optimizer-00001-of-00001.safetensors bs=1 \
  seek=3000 conv=notrunc status=none
expect 'damage' 0 'its bytes do not match their checksum' \
  mpirun -n 2 "${run[@]}" --steps=12 --checkpoint-dir=many3 --resume
expect 'a damaged step' 2 'its bytes do not match their checksum' \
  mpirun -n 2 "${run[@]}" --steps=12 --checkpoint-dir=many3 --resume=8
# Shards that no process reads as a whole.
shardc-gen --layers=64,33,65,10 --batch-size=96 --strategy=tp --mesh=model=3 \
  --loss=softmax_cross_entropy --optimizer=adamw --dropout=0.1 -o columns.mlir
expect 'a damaged step, read in parts' 2 'its bytes do not match their checksum' \
  mpirun -n 3 shardc-run columns.mlir --data=digits --steps=12 --checkpoint-dir=many3 --resume=8
check 'a step that is read in parts' mpirun -n 3 shardc-run columns.mlir --data=digits \
  --steps=12 --checkpoint-dir=many3 --resume=4 --check-reference
expect 'nothing to resume from' 2 'nothing to resume from: none' \
  mpirun -n 2 "${run[@]}" --steps=12 --checkpoint-dir=none --resume
expect 'another training has the folder' 1 'another training writes' \
  flock one/.lock mpirun -n 2 "${run[@]}" --steps=12 --checkpoint-dir=one --resume

# stop WHAT SIGNAL CODE TEXT WHO FLAG...: a run that trains gets a signal, one of
# its processes or all of them.
stop() {
  local what=$1 signal=$2 code=$3 text=$4 who=$5 launcher actual=0
  shift 5
  cases=$((cases + 1))
  rm -rf stopped*
  mpirun -n 2 "${run[@]}" --seed=3 --steps=100000000 \
    --metrics=stopped.jsonl "$@" &>said &
  launcher=$!
  for _ in $(seq 300); do
    if [ -s stopped.jsonl ] &&
      { [ "$#" -eq 0 ] || compgen -G 'stopped/step-*/manifest.json'; } >/dev/null
    then break; fi
    sleep 0.1
  done
  # shellcheck disable=SC2046
  kill -"$signal" $(pgrep -P "$launcher" | sed -n "$who")
  wait "$launcher" || actual=$?
  if [ "$actual" -ne "$code" ] || [ "$(grep -cF -- "$text" said)" -ne 1 ]; then
    fail "$what: exit code $actual instead of $code, or not once \"$text\""
  fi
}
stop 'SIGTERM to one' TERM 0 'all of the work is in stopped/step-' 2p \
  --checkpoint-dir=stopped --checkpoint-every=0.1s --keep=2
check 'what a stop leaves is whole' shardc-checkpoint verify stopped
check 'a checkpoint has the last step' test \
  "$(tail -n 1 stopped.jsonl | sed 's/.*"step":\([0-9]*\).*/\1/')" = \
  "$(shardc-checkpoint list stopped | awk 'END { print $1 }')"
stop 'SIGINT to all' INT 0 'all of the work is in stopped/step-' p \
  --checkpoint-dir=stopped --checkpoint-every=100 --keep=2
stop 'SIGTERM without a folder' TERM 143 'ended by SIGTERM after step' 1p

# A loss that is not finite.
shardc-gen --layers=10,32,16,1 --learning-rate=1000 --batch-size=64 \
  --mesh=data=2 -o n.mlir
expect 'not finite' 5 'the last checkpoint is n/step-' mpirun -n 2 shardc-run \
  n.mlir --data=synthetic:quadratic --steps=50 --checkpoint-dir=n \
  --checkpoint-every=1 --keep=1
check 'the last good one stays' shardc-checkpoint verify n

# with SIZE RANK HOW CALL FLAG...: so many processes, of which one has a fault.
with() {
  local size=$1 rank=$2 how=$3 call=$4 before=() after=()
  shift 4
  local sound=("${run[@]}" "$@")
  local faulty=(-x "LD_PRELOAD=$faults" -x "FAIL_BY=$how" -x "FAIL_AT=$call"
    -x FAIL_CALLS=100000 -n 1 "${sound[@]}")
  [ "$rank" -eq 0 ] || before=(-n "$rank" "${sound[@]}" :)
  [ $((rank + 1)) -eq "$size" ] || after=(: -n $((size - rank - 1)) "${sound[@]}")
  mpirun "${before[@]}" "${faulty[@]}" "${after[@]}"
}
rm -rf many2/step-8 many2/step-12 many2/step-16
flags=(--seed=3 --steps=12 --checkpoint-every=4)

# killed RANK CALL: one of two processes is killed at this call. What is there then is
# whole, and one process or two go on from it as if nothing had happened. Ends with
# exit code 1 if not, 3 if there are fewer calls.
killed() {
  local rank=$1 call=$2 folder=killed.$1.$2 on=$((($1 + $2 / stride) % 2 + 1)) code=0
  cp -r many2 "$folder"
  with 2 "$rank" kill "$call" "${flags[@]/12/8}" --keep=1 --checkpoint-dir="$folder" \
    --resume &>"$folder.said" || code=$?
  [ $code -ne 0 ] || return 3
  compgen -G "$folder/step-[48]" >/dev/null &&
    shardc-checkpoint verify "$folder"/step-[48] &&
    mpirun -n $on "${run[@]}" "${flags[@]}" --checkpoint-dir="$folder" \
      --resume=latest --save-params="$folder.npz" &&
    cmp one.npz "$folder.npz" &&
    shardc-checkpoint diff one/step-12 "$folder/step-12" &&
    ! compgen -G "$folder/*.tmp*"
} &>>"killed.$1.$2.said"

if [ -e "$faults" ]; then
  cp -r many2 part
  expect 'the disk of one is full' 2 'step 12 is not written: rank 1 on' \
    with 3 1 full 1 "${flags[@]}" --keep=2 --checkpoint-dir=part --resume
  check 'the one before stays' test "$(ls part)" = step-4
  for rank in 0 1; do
    calls=0 isDone=
    # Four at once.
    for ((call = 1; !isDone; )); do
      tried=()
      for _ in 1 2 3 4; do
        killed $rank $call &
        tried+=("$!:$call")
        call=$((call + stride))
      done
      for each in "${tried[@]}"; do
        code=0
        wait "${each%:*}" || code=$?
        case $code in
        0) calls=$((calls + 1)) ;;
        3) isDone=1 ;;
        *)
          cp "killed.$rank.${each#*:}.said" said
          fail "rank $rank is killed at its call ${each#*:}"
          ;;
        esac
      done
    done
    cases=$((cases + calls))
    check "rank $rank is killed at its calls" test $((calls * stride)) -ge 10
  done
fi

echo "$cases cases; $failed failed"
[ "$failed" -eq 0 ]
