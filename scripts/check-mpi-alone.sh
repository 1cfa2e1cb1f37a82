#!/usr/bin/env bash
# Processes that mpirun starts are measured, as several devices are. And one that is
# stopped or killed is named by the others, within a deadline of seconds. The test runs
# alone: what else the computer does shows in the times.
#
#   scripts/check-mpi-alone.sh
#
# Exit code 77 where there is no MPI.
source "$(dirname "$0")/common-mpi.sh"

# Four processes are measured as four devices, and estimates use the times.
expect 'processes are measured' 0 'machine.json: GEMMs of f32' \
  mpirun -n 4 shardc-run --measure-machine=machine.json
shardc-gen --layers=64,32,10 --batch-size=96 --strategy=fsdp+tp \
  --mesh=data=2,model=2 -o measured.mlir
expect 'measured processes' 0 'Communication of train_step' \
  shardc-compile measured.mlir --report=comm --machine=machine.json
grep -q 'estimated on 4 processes: ' said || fail 'no estimate on processes'
cases=$((cases + 1))
for kind in all_reduce all_gather reduce_scatter all_to_all collective_permute; do
  for group in devices=2 devices=2,apart=2 devices=4; do
    tr -d ' \n' <machine.json |
      grep -qE "\"$kind\":\{([^}]*\},)*\"$group\":\{\"[0-9]+\":[0-9.e-]+,[^}]*\}" ||
      fail "no times of $kind in groups of $group"
  done
done
python3 - <<'EOF' || fail 'the figures of measured processes cannot be'
import json

machine = json.load(open("machine.json"))
assert 0 <= machine["overlap"] <= 1
for kind, groups in machine["collectives"].items():
    for group, times in groups.items():
        assert len(times) == 5, (kind, group, times)
        order = sorted(times, key=int)
        seconds = [times[number] for number in order]
        # More bytes take no less time, and 4096 times as many much more.
        assert seconds == sorted(seconds) and 0 < 4 * seconds[0] < seconds[-1] < 10, (kind, group, times)
        assert 900 < int(order[0]) < 1100 and 4e6 < int(order[-1]) < 5e6, (kind, group, times)
rates = machine["device"]["flops_per_second"]
assert 1e8 < rates["bf16"] and 1e8 < rates["f32"] < 1e13
for kind in "f32", "bf16":
    assert set(machine["gemms"][kind]) == {"rows", "columns", "terms"}
    for side, measured in machine["gemms"][kind].items():
        assert list(map(int, measured)) == [8, 32, 128]
        assert all(1e7 < rate < 1e13 for rate in measured.values()), (kind, side, measured)
assert 1e8 < machine["device"]["memory_bytes_per_second"] < 1e13
EOF

# A process that stops while they are measured: the others say so, and end.
cases=$((cases + 1))
mpirun -n 3 shardc-run --measure-machine=machine.json --deadline=3 &>said &
launcher=$!
for _ in $(seq 300); do
  ! grep -q '^measuring 3 processes' said || break
  sleep 0.1
done
lost=$(pgrep -P "$launcher" shardc-run | sed -n 2p)
kill -STOP "$lost"
actual=0
wait "$launcher" || actual=$?
kill -KILL "$lost" 2>/dev/null || true
if [ "$actual" -ne 6 ] || ! grep -qE 'rank [02] of 3 on .*: .*rank 1 .*(has not answered|did not)' said; then
  fail "a process stops while it is measured: exit code $actual instead of 6, or no word"
fi

# lose SIGNAL CODE TEXT: of three processes that train, one gets a signal, and
# the others name it. mpirun ends with the code of the first that ends.
lose() {
  local signal=$1 code=$2 text=$3 actual=0 launcher lost
  cases=$((cases + 1))
  rm -f steps.jsonl
  mpirun -n 3 shardc-run model.shardc --data=digits --steps=100000000 \
    --log-every=0 --deadline=3 --metrics=steps.jsonl &>said &
  launcher=$!
  for _ in $(seq 300); do
    [ ! -s steps.jsonl ] || break
    sleep 0.1
  done
  lost=$(pgrep -P "$launcher" | sed -n 2p)
  kill -"$signal" "$lost"
  wait "$launcher" || actual=$?
  kill -KILL "$lost" 2>/dev/null || true
  if [ "$actual" -ne "$code" ] || ! grep -qE -- "$text" said; then
    fail "a process gets SIG$signal: exit code $actual instead of $code, or no \"$text\""
  fi
}
shardc-gen --layers=64,33,10 --batch-size=96 --strategy=dp --mesh=data=3 \
  --loss=softmax_cross_entropy -o model.mlir
shardc-compile model.mlir -o model.shardc &>said
lose KILL 137 'rank [02] of 3 on .*: rank 1 on .* has gone'
lose STOP 6 'rank [02] of 3 on .*: .*rank 1 has not answered for 3s; rank 1 on .* was last in'

echo "$cases cases; $failed failed"
[ "$failed" -eq 0 ]
