#!/usr/bin/env bash
# Processes that mpirun starts, with some of the CPU devices each, train what one
# process trains, evaluates and predicts, to the same bits. And what does not work is
# said, once. scripts/check-mpi-alone.sh has what depends on time.
#
#   scripts/check-mpi.sh
#
# Exit code 77 where there is no MPI.
source "$(dirname "$0")/common-mpi.sh"

# train WHAT STRATEGY MESH "SIZE..." FLAG...: losses, parameters and evaluation of
# so many processes are those of one, whatever the number of its threads.
train() {
  local what=$1 strategy=$2 mesh=$3 sizes=$4 size
  shift 4
  shardc-gen --layers=64,33,65,10 --batch-size=96 --strategy="$strategy" \
    --mesh="$mesh" --activation=gelu --loss=softmax_cross_entropy \
    --optimizer=adamw --clip-norm=0.5 --dropout=0.1 "$@" -o model.mlir
  # The remark about a plan that was compiled before is not of interest.
  shardc-compile model.mlir -o model.shardc &>said
  shardc-run model.shardc --data=digits --steps=6 --seed=3 --ordered-sums \
    --metrics=one.jsonl --save-params=one.npz >one.said 2>&1
  for size in $sizes; do
    cases=$((cases + 1))
    rm -f many.*
    if ! mpirun -n "$size" shardc-run model.shardc --data=digits --steps=6 \
      --seed=3 --metrics=many.jsonl --save-params=many.npz >said 2>said.err; then
      cat said.err >>said
      fail "$what, $size processes: does not train"
    elif ! cmp -s <(losses one.jsonl) <(losses many.jsonl) ||
      ! cmp -s one.npz many.npz ||
      ! cmp -s <(grep ^evaluation one.said) <(grep ^evaluation said); then
      fail "$what, $size processes: other numbers"
    elif [ "$(grep -c '^done' said)" -ne 1 ] || [ -s said.err ]; then
      cat said.err >>said
      fail "$what, $size processes: not one of them speaks"
    fi
  done
}

# use WHAT SIZE FLAG...: so many processes evaluate and predict as one does, with what
# the last model has learnt, and on another mesh or batch size.
use() {
  local what=$1 size=$2
  shift 2
  shardc-compile model.mlir "$@" -o used.shardc &>said
  rm -f one.npy many.npy
  local run=(shardc-run used.shardc --load-params=one.npz)
  cases=$((cases + 1))
  if ! "${run[@]}" --evaluate-only --data=digits --ordered-sums >one.said 2>&1 ||
    ! "${run[@]}" --predict=one.npy --data=digits:test --ordered-sums >said 2>&1 ||
    ! mpirun -n "$size" "${run[@]}" --evaluate-only --data=digits >many.said 2>&1 ||
    ! mpirun -n "$size" "${run[@]}" --predict=many.npy --data=digits:test >said 2>&1; then
    fail "$what, $size processes: do not predict"
  elif ! grep -q '^evaluation .*accuracy' one.said ||
    ! cmp -s <(grep ^evaluation one.said) <(grep ^evaluation many.said) ||
    ! cmp -s one.npy many.npy; then
    fail "$what, $size processes: other predictions"
  elif [ "$(grep -c '^prediction' said)" -ne 1 ]; then
    fail "$what, $size processes: not one of them speaks"
  fi
}

train 'dp' dp data=8 '1 2 3 4 8'
train 'FSDP' fsdp data=8 '2 4'
train 'FSDP, uneven' fsdp data=6 '2 4'
use 'FSDP, uneven' 4
train 'ZeRO-1' zero1 data=8 '2 4'
train 'ZeRO-2, uneven' zero2 data=5 '2'
train 'TP' tp model=4 '2 4'
train 'dp and TP' dp+tp data=2,model=3 '2 3'
train 'FSDP and TP' fsdp+tp data=4,model=2 '2 4'
use 'another mesh and batch' 3 --mesh=data=3,model=1 --batch-size=7
train 'hybrid FSDP' hsdp replica=2,shard=4 '2 4'
train 'microbatches' fsdp data=4 '2' --microbatches=3

# Pipelines: of three processes one has devices of several stages, and shares
# others with the next.
train 'pipeline' dp+pp stage=4,data=2 '2 3' --layers=64,33,65,48,10 \
  --stages=4 --microbatches=4
use 'pipeline' 3
train 'pipeline, stages minor' fsdp+pp data=3,stage=2 '4' --stages=2 \
  --microbatches=4

# Wide layers: messages of their own.
train 'wide' dp data=4 '2 4' --layers=64,512,256,10
train 'wide FSDP' fsdp data=4 '2 4' --layers=64,512,256,10
# As between hosts.
export SHARDC_MESSAGES=1
train 'wide, messages' dp data=4 '2 4' --layers=64,512,256,10
train 'wide FSDP, messages' fsdp data=4 '2' --layers=64,512,256,10
unset SHARDC_MESSAGES

# A trace of all, on one clock.
cases=$((cases + 1))
mpirun -n 3 shardc-run model.shardc --data=digits --steps=6 --trace=many.json.gz \
  --json >summary 2>said
python3 "$source_folder/test/Integration/Inputs/check_trace.py" many.json.gz summary 3 >>said 2>&1 ||
  fail 'trace of three processes'

# Each process reads its rows alone, of arrays that are not compressed: of 32 MB it
# has half in the first epoch, beside some MB that programs read. Those of the
# evaluation do not fill the last batch.
cat >write.py <<'END'
import random, struct, zipfile
rows, width = 8192, 1024
random.seed(1)
values = [random.uniform(-1, 1) for _ in range(9973)]
data = struct.pack("<9973f", *values)
def npy(descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + data
def write(path, method, rows):
    with zipfile.ZipFile(path, "w", method) as archive:
        x = data * (rows * width // 9973 + 1)
        archive.writestr("x.npy", npy("<f4", (rows, width), x[: 4 * rows * width]))
        labels = bytes(i * 7 % 10 for i in range(rows))
        archive.writestr("y.npy", npy("|u1", (rows,), labels))
write("stored.npz", zipfile.ZIP_STORED, rows)
write("packed.npz", zipfile.ZIP_DEFLATED, rows)
write("few.npz", zipfile.ZIP_STORED, 300)
END
python3 write.py
shardc-gen --layers=1024,32,10 --batch-size=256 --strategy=fsdp --mesh=data=4 \
  --loss=softmax_cross_entropy -o rows.mlir
shardc-compile rows.mlir -o rows.shardc &>said
rowsOf() {
  rm -f many.npz
  # The last word is the number of bytes that a process has read.
  mpirun -n "$1" bash -c 'shardc-run "$@" && sed -n "s/rchar: /read /p" /proc/$$/io' \
    run rows.shardc --data="$2" --eval-data=few.npz --epochs=1 --seed=3 \
    --save-params=many.npz
}
shardc-run rows.shardc --data=stored.npz --eval-data=few.npz --epochs=1 --seed=3 \
  --ordered-sums --save-params=one.npz >one.said
for size in 2 4; do
  cases=$((cases + 1))
  rowsOf "$size" stored.npz &>said || fail "rows, $size processes"
  if ! cmp -s one.npz many.npz ||
    ! cmp -s <(grep ^evaluation one.said) <(grep ^evaluation said); then
    fail "rows, $size processes: other numbers"
  elif ! awk -v most=$((32000000 / size + 8000000)) -v size="$size" \
    '$1 == "read" { n++; bad += $2 > most } END { exit bad || n != size }' said
  then
    fail "rows, $size processes: they read rows of others"
  fi
done
expect 'a compressed array' 0 \
  'warning: packed.npz: each process reads all of array "x"' rowsOf 2 packed.npz
cases=$((cases + 1))
cmp -s one.npz many.npz || fail 'a compressed array: other numbers'

# Files of parameters are those of one process, and each process reads its part.
# Shards of columns are uneven.
shardc-gen --layers=64,33,65,10 --batch-size=96 --strategy=fsdp+tp \
  --mesh=data=2,model=3 --loss=softmax_cross_entropy -o parts.mlir
shardc-compile parts.mlir -o parts.shardc &>said
run=(shardc-run parts.shardc --data=digits --steps=2 --seed=3)
for kind in npz safetensors; do
  "${run[@]}" --ordered-sums --save-params=first.$kind &>said
  "${run[@]}" --ordered-sums --load-params=first.$kind --save-params=one.$kind &>said
  for size in 3 2; do
    [ "$kind$size" != safetensors2 ] || continue
    cases=$((cases + 1))
    rm -f many.$kind
    mpirun -n "$size" "${run[@]}" --load-params=first.$kind \
      --save-params=many.$kind &>said && cmp one.$kind many.$kind >>said ||
      fail "parameters in .$kind, $size processes: other ones"
  done
done
python3 -c 'import sys, zipfile; sys.exit(zipfile.ZipFile("many.npz").testzip())' ||
  fail 'many.npz is not a whole archive'
printf x | dd of=first.npz bs=1 seek=3000 conv=notrunc status=none
expect 'damaged parameters' 2 'its bytes do not match their checksum' \
  mpirun -n 2 "${run[@]}" --load-params=first.npz

run=(shardc-run model.shardc --data=digits --steps=2)
expect 'no such file' 2 'nothere.npz' \
  mpirun -n 2 shardc-run model.shardc --data=nothere.npz --steps=2
expect 'more processes than devices' 2 'fewer than the 5 processes' \
  mpirun -n 5 "${run[@]}"
expect 'other seeds' 2 'has --seed=4, and rank 0 has no --seed' \
  mpirun -n 1 "${run[@]}" : -n 1 "${run[@]}" --seed=4
expect 'no MPI' 9 'CPU devices in several processes need MPI: looked for /none' \
  env SHARDC_LIBMPI=/none SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 \
  SLURM_LOCALID=0 SLURM_STEP_NUM_NODES=1 "${run[@]}"
expect 'processes that MPI does not know' 9 'MPI calls it rank 0 of 1' \
  env SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=1 \
  SLURM_STEP_NUM_NODES=1 "${run[@]}"
expect 'srun without PMIx' 9 'expected srun --mpi=pmix' \
  env SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 \
  SLURM_STEP_NUM_NODES=1 "${run[@]}"
expect 'torchrun' 1 'mpirun -n 2' \
  env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 "${run[@]}"

echo "$cases cases; $failed failed"
[ "$failed" -eq 0 ]
