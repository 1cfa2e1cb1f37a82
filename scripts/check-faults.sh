#!/usr/bin/env bash
# The table of docs/Hosts.md#faults with real processes: whatever happens to one of
# three that mpirun starts, and in whichever phase, the others name it and end with
# the exit code of the table; what cannot go right is refused before the first step.
#
#   scripts/check-faults.sh
#
# Exit code 77 where there is no MPI.
source "$(dirname "$0")/common-mpi.sh"
faults=$build/bin/fail-writes.so

# What mpirun starts. It notes the exit code of its process and stays until all
# have ended: mpirun would end the others itself after the first error.
cat >each <<'END'
#!/usr/bin/env bash
rank=$OMPI_COMM_WORLD_RANK
[ "$rank" != "${FAULT_RANK-}" ] || eval "$FAULT"
"$@" &>"said.$rank" &
echo $! >"pid.$rank"
wait $! 2>/dev/null
echo $? >"code.$rank.tmp"
mv "code.$rank.tmp" "code.$rank"
for _ in $(seq 1000); do
  [ "$(compgen -G 'code.?' | wc -l)" -lt "$OMPI_COMM_WORLD_SIZE" ] || exit 0
  sleep 0.02
done
END
chmod +x each

generate() {
  shardc-gen --batch-size=96 --loss=softmax_cross_entropy --optimizer=momentum \
    --dropout=0.1 "$@"
}
generate --layers=64,33,10 --strategy=dp --mesh=data=3 -o model.mlir
shardc-compile model.mlir -o model.shardc &>said
run=(shardc-run ../model.shardc --data=digits --log-every=0 --heartbeat=200ms)
# Longer than the start of three processes where others start, too.
soon=--deadline=2

# await COMMAND...: until it succeeds, some seconds at most.
await() {
  for _ in $(seq 750); do
    ! "$@" || return 0
    sleep 0.02
  done
}

# Each case is a function that runs in a folder of its own, beside others:
# `check WHAT FUNCTION ARGUMENT...`.
running=0
collect() {
  wait -n || failed=$((failed + 1))
  running=$((running - 1))
}
check() {
  cases=$((cases + 1))
  mkdir "$cases"
  (
    cd "$cases"
    failed=0 what=$1
    shift
    "$@" >&2
    [ "$failed" -eq 0 ]
  ) &
  running=$((running + 1))
  [ "$running" -lt 4 ] || collect
}

start() {
  mpirun -n $size ../each "$@" &>said &
  launcher=$!
}
size=3
signal() {
  await test -s "pid.$2"
  kill -"$1" "$(cat "pid.$2")"
}

# ended "CODE..." TEXT [RANK...]: the processes end with these exit codes, by rank,
# and those of RANK say TEXT, a pattern; without RANK one of all does: what would be
# the same words in several is printed once.
ended() {
  local codes=$1 text=$2 rank
  shift 2
  # Those that have been stopped are there until the others have ended.
  await all ${@:-$(seq 0 $((size - 1)))}
  # shellcheck disable=SC2046
  kill -KILL $(cat pid.?) 2>/dev/null || true
  wait "$launcher" 2>/dev/null || true
  cat said.? >>said
  if [ "$(cat code.? | tr '\n' ' ')" != "$codes " ]; then
    fail "$what: exit codes $(cat code.? | tr '\n' ' '), expected $codes"
    return
  fi
  grep -qE -- "$text" said || fail "$what: nobody says \"$text\""
  for rank in "$@"; do
    grep -qE -- "$text" "said.$rank" ||
      fail "$what: rank $rank does not say \"$text\""
  done
}
all() {
  local rank
  for rank in "$@"; do [ -e "code.$rank" ] || return 1; done
}

# fault RANK CODE: what comes before the process of RANK starts.
fault() { export FAULT_RANK=$1 FAULT=$2; }
# preload KIND AT [PATH]: a fault of the calls that change a checkpoint, or of
# those with PATH, from the AT-th on.
preload() {
  printf 'export LD_PRELOAD=%s FAIL_BY=%s FAIL_AT=%s FAIL_CALLS=100000 ' \
    "$faults" "$1" "$2"
  [ $# -lt 3 ] || printf 'FAIL_PATH=%s' "$3"
}

# A process is killed or stopped, in each phase. Without a sign of the lost one the
# others would wait for five minutes.
lose() {
  local signal=$1 lost=$2 phase=$3 rank others=() codes=() text deadline=
  for rank in 0 1 2; do
    if [ "$rank" = "$lost" ]; then
      codes+=(137)
    else
      codes+=(6)
      others+=("$rank")
    fi
  done
  text="rank $lost( on [^ ]*)?(, which keeps the store at [^ ]*,)? has gone"
  if [ "$signal" = STOP ]; then
    deadline=$soon
    text="rank $lost( on [^ ]*)?.* (has given no sign|has not answered) for"
  fi
  case $phase in
  start)
    fault "$lost" "$(preload "${signal,,}" 1 .shardc)"
    start "${run[@]}" --steps=12 $deadline
    ;;
  step)
    start "${run[@]}" --steps=100000000 --metrics=steps.jsonl $deadline
    await test -s steps.jsonl
    signal "$signal" "$lost"
    text+='.*the last step of rank [0-9] was'
    # Its own watchdog may be the first to end a process.
    [ $signal = KILL ] || text+="|waiting for rank $lost, has not ended after"
    ;;
  checkpoint)
    fault "$lost" "$(preload "${signal,,}" 3)"
    start "${run[@]}" --steps=12 --checkpoint-dir=c --checkpoint-every=4 $deadline
    ;;
  shutdown)
    # Rank 0 writes parameters slowly, and the others wait for its end.
    fault 0 "$(preload slow 1 parameters)"
    start "${run[@]}" --steps=2 --save-params=parameters.npz $deadline
    await compgen -G 'parameters*' >/dev/null
    signal "$signal" "$lost"
    ;;
  esac
  if [ $signal.$phase = STOP.checkpoint ]; then others=(); fi
  ended "${codes[*]}" "$text" "${others[@]}"
}
for lost in 1 0; do
  for phase in start step checkpoint shutdown; do
    [ -e "$faults" ] || [ $phase = step ] || continue
    check "rank $lost gets SIGKILL in its $phase" lose KILL $lost $phase
    case $lost.$phase in 0.start | 0.checkpoint | 0.shutdown) continue ;; esac
    check "rank $lost gets SIGSTOP in its $phase" lose STOP $lost $phase
  done
done

# A stage of a pipeline: errors name the transfer.
stage() {
  start "${run[@]/model/pipeline}" --steps=100000000 --metrics=steps.jsonl $2
  await test -s steps.jsonl
  signal "$1" 1
  ended '6 137 6' "$3" 0 2
}
generate --layers=64,33,65,10 --strategy=pp --mesh=stage=3 --stages=3 --microbatches=4 -o pipeline.mlir
shardc-compile pipeline.mlir -o pipeline.shardc &>said
check 'the process of a stage is killed' stage KILL '' \
  'rank 1 .* has gone.* \((in (send to|receive from) stage rank 1, message [0-9]+, (after|for) [FB] of microbatch [0-3], pipeline.mlir:[0-9:]+|while (reading loss|comparing times))\)'
check 'the process of a stage is stopped' stage STOP $soon \
  'rank 1 .* has given no sign|waiting for rank [01], has not ended after'

# The loop of docs/Hosts.md, which starts all again when one is killed: three times in
# the third checkpoint of a process.
again() {
  local tries=0 faulty=(-x "LD_PRELOAD=$faults" -x FAIL_BY=kill -x FAIL_AT=60)
  until mpirun -n 3 "${faulty[@]}" "${run[@]}" --steps=40 --checkpoint-dir=c \
    --checkpoint-every=4 --resume=if-any --metrics=steps.jsonl &>said; do
    case $? in 6 | 13[4-9]) ;; *) break ;; esac
    tries=$((tries + 1))
    [ $tries -lt 3 ] || faulty=()
    [ $tries -lt 5 ] || break
  done
  [ $tries -eq 3 ] || fail "$what: begun $tries times again"
  "${run[@]}" --steps=40 --ordered-sums --metrics=one.jsonl &>said
  cmp <(losses one.jsonl) <(losses steps.jsonl) || fail "$what: other losses"
}
[ ! -e "$faults" ] || check 'a loop that restarts' again

# Writes of a checkpoint that take longer than the deadline, but go on.
slowly() {
  fault "$1" "$(preload slow 1)"
  start "${run[@]}" --steps=2 --checkpoint-dir=c --deadline=1
  ended "$2" 'checkpoints +1 written, the last c/step-2' 0
}
# One that does not go on is named.
hangs() {
  fault "$1" "$(preload hang 3)"
  start "${run[@]}" --steps=2 --checkpoint-dir=c $soon
  ended "$2" "$3"
}
# So are parameters.
savesSlowly() {
  fault 0 "$(preload slow 1 parameters)"
  start "${run[@]/model/deep}" --steps=2 --save-params=parameters.npz --deadline=1
  ended "$1" 'done +2 steps' 0
  [ -s parameters.npz ] || fail "$what: no parameters"
}
if [ -e "$faults" ]; then
  generate --layers=64,33,33,33,33,33,33,33,33,33,33,10 --strategy=dp --mesh=data=3 -o deep.mlir
  shardc-compile deep.mlir -o deep.shardc &>said
  check 'rank 0 saves parameters slowly' savesSlowly '0 0 0'
  size=1
  check 'one process saves parameters slowly' savesSlowly 0
  size=3
  check 'rank 1 writes slowly' slowly 1 '0 0 0'
  check 'rank 0 writes slowly' slowly 0 '0 0 0'
  check 'the disk of rank 1 hangs' hangs 1 '6 6 6' \
    'rank 1 has not written its part after 2s; rank 1 on .* was last in writing the last checkpoint, beside that in writing the checkpoint of step 2'
  size=1
  check 'one process writes slowly' slowly 0 0
  check 'the disk of one process hangs' hangs 0 6 \
    'writing the last checkpoint has not ended after 2s'
  size=3
fi

# The disk of one process, or of all: the checkpoint before stays, and the
# training goes on to its end.
spoil() {
  local rank=$1 kind=$2 text=$3
  cp -r ../first c
  fault "$rank" "$(preload "$kind" 1)"
  start "${run[@]}" --steps=12 --checkpoint-dir=c --checkpoint-every=4 --resume
  ended '2 2 2' "the checkpoint of step 12 is not written: .*: $text; the last one is c/step-4"
  shardc-checkpoint verify c >>said 2>&1 || fail "$what: not whole"
  [ "$(ls c)" = step-4 ] || fail "$what: $(ls c) is left"
}
removed() {
  cp -r ../first c
  start "${run[@]}" --steps=100000000 --checkpoint-dir=c --checkpoint-every=0.2s --keep=2 --resume
  await [ ! -e c/step-4 ]
  mv c moved
  sleep 0.5
  signal TERM 1
  ended '143 143 143' 'is not written: .*/step-[0-9]*.tmp: cannot make: No such file or directory'
  shardc-checkpoint verify moved >>said 2>&1 || fail "$what: not whole"
}
if [ -e "$faults" ]; then
  "${run[@]//..\//}" --steps=4 --checkpoint-dir=first &>said
  check 'the disk of rank 0 is full' spoil 0 full 'No space left on device'
  check 'the disk of rank 1 is read-only' spoil 1 readonly 'Read-only file system'
  check 'the folder has gone' removed
fi

# A process gets no memory, and so its plan no arena: its error is that of all.
starve() {
  fault 1 'ulimit -v 1100000'
  start shardc-run ../wide.shardc --data=digits --steps=2 --heartbeat=200ms
  ended '4 4 4' 'rank 1( of 3)? on [^ ]*(:| failed:) out of memory: cannot allocate' 0 1 2
}
generate --layers=64,9000,9000,10 --strategy=dp --mesh=data=3 -o wide.mlir
shardc-compile wide.mlir -o wide.shardc &>said
[[ "$(ldd "$(command -v shardc-run)")" = *[alt]san* ]] || check 'out of memory' starve
# No device can hold its plan.
exceed() {
  start "${run[@]/model.shardc/model.mlir}" --steps=2 --device-memory=1000
  ended '4 4 4' 'error: a device needs [0-9]+ bytes of memory and has 1000'
}
check 'a plan that is refused' exceed

# Processes that were not started for the same training.
other() {
  local text=$1
  shift
  mpirun -n 1 "${run[@]}" --steps=2 : -n 1 "${run[@]}" --steps=2 : -n 1 "$@" &>said || code=$?
  if [ "${code-0}" -ne 2 ] || ! grep -qE -- "rank 2 on [^ ]* has $text" said; then
    fail "$what: exit code ${code-0}, or not \"$text\""
  fi
}
check 'another flag' other '--steps=3, and rank 0 has --steps=2' "${run[@]}" --steps=3
check 'flags that only one has' other \
  '--no-shuffle, and rank 0 has no --no-shuffle; rank 2 .* has no --steps' \
  "${run[@]}" --no-shuffle --threads=1
sed 's/0.1/0.2/' model.mlir >other.mlir
shardc-compile other.mlir -o other.shardc &>said
check 'another plan' other 'a plan of .* bytes with checksum .*, and rank 0 has a plan' \
  "${run[@]/model/other}" --steps=2
# The models of two hosts, by one name.
otherModel() {
  mkdir own
  sed 's/0.1/0.2/' ../model.mlir >own/model.mlir
  cp ../model.mlir .
  mpirun -n 1 shardc-run model.mlir --data=digits --steps=2 : \
    -n 1 -wdir own shardc-run model.mlir --data=digits --steps=2 &>said || code=$?
  grep -qE 'line [0-9]+ of model.mlir is ".*0\.1.*" on rank 0, and ".*0\.2.*" on rank 1' said &&
    [ "$code" -eq 2 ] || fail "$what"
}
check 'another model' otherModel
# The data of two hosts, by one name.
otherData() {
  mkdir own
  python3 "$source_folder/test/Integration/Inputs/write_npz.py" data.npz x=f4:192x64:1,2 y=i4:192:1
  python3 "$source_folder/test/Integration/Inputs/write_npz.py" own/data.npz x=f4:192x64:1,3 y=i4:192:1
  local first=(-n 2 shardc-run ../model.shardc --data=data.npz)
  local second=(-n 1 -wdir own shardc-run ../../model.shardc --data=data.npz)
  mpirun "${first[@]}" : "${second[@]}" &>said || code=$?
  grep -qE 'rank 2 on [^ ]* has data.npz of [0-9]* bytes with checksum [0-9a-f]*, and rank 0 has data.npz of' said &&
    [ "$code" -eq 2 ] || fail "$what: exit code ${code-0}"
  rm own/data.npz
  mpirun "${first[@]}" : "${second[@]}" &>said || code=$?
  grep -q 'rank 2 on [^ ]* has no data.npz that can be read, and rank 0 has' said &&
    [ "$code" -eq 2 ] || fail "$what: exit code ${code-0} without the file"
}
check 'other data' otherData
# As a build of another version.
sed "s/$(shardc-run --version | sed 's/shardc //; s/\./\\./g')/9.9.9/g" "$(command -v shardc-run)" >newer
chmod +x newer
otherVersion() {
  export SHARDC_LIBMPI=$plugin
  mpirun -n 1 "${run[@]}" --steps=2 : -n 1 ../newer "${run[@]:1}" --steps=2 &>said || code=$?
  grep -qE 'rank 1 on [^ ]* is of shardc 9.9.9, and rank 0 of shardc' said &&
    [ "$code" -eq 2 ] || fail "$what"
}
check 'another version' otherVersion
while [ "$running" -gt 0 ]; do collect; done
echo "$cases cases; $failed failed"
[ "$failed" -eq 0 ]
