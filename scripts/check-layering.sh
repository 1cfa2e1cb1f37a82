#!/usr/bin/env bash
# Succeeds if includes follow the arrows of docs/Architecture.md:
#   Support -> Dialect/IR -> Analysis
#           -> {Transforms, Conversion, Interpreter, Target} -> Pipelines -> tools
# and the runtime knows nothing of the compiler.
source "$(dirname "$0")/common.sh"
failed=0

# forbid WHAT PATTERN FOLDER...: no file of the folders includes PATTERN.
forbid() {
  local what=$1 pattern=$2
  shift 2
  local found
  found=$(grep -rnE "#include [\"<]($pattern)" "$@" \
    --include='*.h' --include='*.cpp' || true)
  if [ -n "$found" ]; then
    printf '%s:\n%s\n' "$what" "$found"
    failed=1
  fi
}

# layer FOLDER FORBIDDEN: both the headers and the sources of a layer.
layer() {
  forbid "$1 includes a layer above it" "$2" "include/shardc/$1" "lib/$1"
}

layer Support 'mlir/|shardc/(Dialect|Analysis|Conversion|Interpreter|Target|Pipelines)'
layer Dialect/Shardc/IR \
  'shardc/(Dialect/Shardc/Transforms|Analysis|Conversion|Interpreter|Target|Pipelines)'
layer Analysis \
  'shardc/(Dialect/Shardc/Transforms|Conversion|Interpreter|Target|Pipelines)'
layer Dialect/Shardc/Transforms 'shardc/(Conversion|Interpreter|Target|Pipelines)'
layer Conversion 'shardc/(Dialect/Shardc/Transforms|Interpreter|Target|Pipelines)'
layer Interpreter 'shardc/(Dialect/Shardc/Transforms|Conversion|Target|Pipelines)'
layer Models 'shardc/(Dialect/Shardc/Transforms|Analysis|Conversion|Interpreter|Target|Pipelines)'
layer Target 'shardc/(Dialect/Shardc/Transforms|Interpreter|Pipelines)'
forbid 'the compiler includes the runtime' 'shardc-rt/' include lib
forbid 'the runtime includes the compiler' 'mlir/|llvm/|shardc/' runtime
forbid 'the runtime core includes a vendor' 'cuda|nccl|mpi\.h' \
  runtime/include runtime/src/base runtime/src/comm runtime/src/plan runtime/src/exec \
  runtime/src/collectives runtime/src/data runtime/src/init runtime/src/train
exit $failed
