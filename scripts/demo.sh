#!/usr/bin/env bash
# Installs what is missing, builds, and trains two models on a mesh of eight
# virtual CPU devices: the MLP of the JAX scaling notebooks and a classifier of
# handwritten digits. Works on a fresh Debian 12.
source "$(dirname "$0")/common.sh"

install_packages
build_shardc shardc-gen shardc-compile shardc-run
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

say "Done. README.md says how to go on."
