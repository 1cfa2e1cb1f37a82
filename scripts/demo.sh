#!/usr/bin/env bash
# Installs what is missing, builds, and trains two models on a mesh of eight
# virtual CPU devices: the MLP of the JAX scaling notebooks and a classifier of
# handwritten digits. Then two processes train the classifier, one is killed, and
# its training goes on in one process on another mesh, and predicts. Works on a
# fresh Debian 12.
source "$(dirname "$0")/common.sh"

install_packages
build_shardc shardc-gen shardc-compile shardc-run shardc-checkpoint shardc-rt-mpi
bin=$PWD/$build/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run COMMAND...: shows the command, then what it prints.
run() {
  printf '\n$ %s\n' "$*"
  PATH=$bin:$PATH "$@"
}
cp examples/mlp_dp.mlir examples/mlp_columns.mlir "$work"
cd "$work"

say "The notebook MLP, parameters sharded over data=4 and model=2"
run shardc-gen --layers=10,32,16,1 --activation=relu --loss=mse \
  --optimizer=sgd --learning-rate=0.01 --strategy=fsdp+tp \
  --mesh=data=4,model=2 --batch-size=1024 -o mlp.mlir
run cat mlp.mlir
run shardc-compile mlp.mlir --report=comm,memory
run shardc-compile mlp.mlir -o mlp.shardc
run shardc-run mlp.shardc --data=synthetic:quadratic --epochs=5

say "The same on one device, on eight by rows, and on 2x4 by columns: equal losses"
run shardc-run mlp.mlir --mesh=data=1,model=1 --data=synthetic:quadratic --epochs=5
run shardc-run mlp_dp.mlir --data=synthetic:quadratic --epochs=5
run shardc-run mlp_columns.mlir --data=synthetic:quadratic --epochs=5

say "Handwritten digits on eight devices, fully sharded"
run shardc-gen --layers=64,128,64,10 --activation=relu \
  --loss=softmax_cross_entropy --optimizer=adam --learning-rate=0.002 \
  --strategy=fsdp --mesh=data=8 --batch-size=64 -o digits.mlir
run shardc-run digits.mlir --data=digits --epochs=20

say "Two processes train on; one of them is killed"
# In containers the user is root, and there may be fewer cores than processes.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
run mpirun -n 2 shardc-run digits.mlir --data=digits --epochs=1000000 --log-every=0 \
  --checkpoint-dir=checkpoints --checkpoint-every=500 --keep=2 >two.log 2>&1 &
launcher=$!
for _ in $(seq 600); do
  [ -d checkpoints/step-1000 ] && break
  sleep 0.1
done
pkill -KILL -n -P "$(pgrep -P "$launcher" mpirun || echo "$launcher")" shardc-run
wait "$launcher" || true
# Without the progress, which mpirun's terminal draws.
tr '\r' '\n' <two.log | grep -aE '^(\$|model|mesh|shardc-run:)'

say "It goes on after its last checkpoint, in one process on four devices, and predicts"
run shardc-checkpoint list checkpoints
last=$(ls checkpoints | sed -n 's/^step-\([0-9]*\)$/\1/p' | sort -n | tail -n 1)
run shardc-run digits.mlir --mesh=data=4 --data=digits --checkpoint-dir=checkpoints \
  --resume --steps=$((last + 220))
run shardc-run digits.mlir --mesh=data=4 --checkpoint-dir=checkpoints --resume \
  --predict=logits.npy --data=digits:test

say "Done. README.md says how to go on."
