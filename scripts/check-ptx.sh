#!/usr/bin/env bash
# The PTX of the runtime, of every example, of every strategy and of layers large
# and small assembles for sm_80 and sm_90, and no elementwise kernel spills registers.
# Prints how many kernels there are and the most registers one takes.
#
#   scripts/check-ptx.sh [MODULUS REMAINDER]
#
# With a modulus m and a remainder r only every m-th model, starting with the
# r-th, is assembled.
#
# The assembler is SHARDC_PTXAS, or the ptxas on PATH or of an installed CUDA
# toolkit; without one the exit code is 77. It also comes with the Python package
# nvidia-cuda-nvcc.
source "$(dirname "$0")/common.sh"
ptxas=${SHARDC_PTXAS:-$(command -v ptxas || echo /usr/local/cuda/bin/ptxas)}
if [ ! -x "$ptxas" ]; then
  echo "skipped: no ptxas on PATH, in /usr/local/cuda/bin or in SHARDC_PTXAS"
  exit 77
fi
case "$build" in /*) bin=$build/bin ;; *) bin=$PWD/$build/bin ;; esac
PATH=$bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
modules=0 failed=0
takeEvery "$@"

fail() {
  failed=$((failed + 1))
  printf 'FAILED: %s\n%s\n' "$1" "$(tail -n 5 "$work/log")"
}

# check NAME MODEL FLAG...: assembles the PTX of a model.
check() {
  if ! isTaken; then return; fi
  local name=$1 model=$2 chip
  shift 2
  for chip in sm_80 sm_90; do
    modules=$((modules + 1))
    shardc-opt "$model" --target=cuda:$chip --compile-to=codegen "$@" \
      --shardc-emit-ptx=output="$work/k.ptx" -o /dev/null &>"$work/log" &&
      "$ptxas" -arch=$chip -v "$work/k.ptx" -o "$work/k.cubin" &>"$work/log" ||
      fail "$name for $chip"
    # One line per kernel: its name, bytes spilled, registers.
    awk '/Compiling entry function/ { split($0, part, "\047"); kernel = part[2] }
      /spill stores/ { spilled = 0
        if (match($0, /[0-9]+ bytes spill stores/))
          spilled += substr($0, RSTART) + 0
        if (match($0, /[0-9]+ bytes spill loads/))
          spilled += substr($0, RSTART) + 0 }
      /Used [0-9]+ registers/ { match($0, /Used [0-9]+/)
        print kernel, spilled, substr($0, RSTART + 5, RLENGTH - 5) }' \
      "$work/log" >"$work/kernels"
    cat "$work/kernels" >>"$work/all"
    if [ ! -s "$work/kernels" ]; then fail "$name for $chip: no kernels"; fi
    if awk '$1 ~ /^shardc_map_/ && $2 > 0 { found = 1; print }
        END { exit !found }' "$work/kernels" >"$work/log"; then
      fail "$name for $chip: an elementwise kernel spills"
    fi
  done
}

# What the runtime brings along for collectives.
for chip in sm_80 sm_90; do
  modules=$((modules + 1))
  print-collective-ptx >"$work/k.ptx" &&
    "$ptxas" -arch=$chip -v "$work/k.ptx" -o "$work/k.cubin" &>"$work/log" &&
    ! grep -q '[1-9][0-9]* bytes spill' "$work/log" ||
    fail "kernels of collectives for $chip"
done
for example in examples/*.mlir; do check "$example" "$example"; done
for strategy in none dp zero1 zero2 fsdp hsdp tp dp+tp fsdp+tp hsdp+tp; do
  case $strategy in
  hsdp*) mesh=replica=2,shard=2,model=2 ;;
  *) mesh=data=4,model=2 ;;
  esac
  for layers in 10,33,17,3 784,1024,1024,10; do
    shardc-gen --layers=$layers --batch-size=256 --strategy=$strategy \
      --mesh=$mesh --activation=gelu --loss=softmax_cross_entropy \
      --optimizer=adamw --clip-norm=0.5 --layer-norm --dropout=0.1 \
      -o "$work/model.mlir"
    check "$strategy $layers" "$work/model.mlir"
    case $strategy in fsdp | dp+tp)
      check "$strategy $layers in bf16" "$work/model.mlir" --dtype=bf16 ;;
    esac
  done
done
for golden in test/golden/*/model.mlir; do check "$golden" "$golden"; done
# The compiler calls the assembler itself, and the plan has what that makes.
modules=$((modules + 1))
shardc-compile examples/mlp_fsdp_tp.mlir --target=cuda:sm_90 --ptxas="$ptxas" \
  -o "$work/plan.shardc" --json 2>"$work/log" >"$work/report" &&
  grep -q '"cubin_bytes": [1-9]' "$work/report" ||
  fail 'a plan with a cubin'
awk -v modules=$modules -v failed=$failed '
  { ++kernels; if ($3 > most) most = $3; if ($2 > 0) ++spilling }
  END { printf "%d modules, %d kernels, at most %d registers, ", modules,
          kernels, most
        printf "%d kernels spill; %d failed\n", spilling, failed }' "$work/all"
[ "$failed" -eq 0 ]
