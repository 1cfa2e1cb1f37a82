#!/usr/bin/env bash
# Succeeds if includes follow the arrows of docs/Architecture.md (a room includes
# itself and the rooms named beside it here, and the runtime knows nothing of the
# compiler) and if every class lies in one file.
source "$(dirname "$0")/common.sh"
failed=0

# Room: the rooms that it may include besides. Dialect/Shardc/IR is called IR.
rooms='
Support:
Sharding: Support IR/Enums.h
CostModel: Support Sharding IR/Enums.h
Reshard: Support Sharding CostModel IR/Enums.h
PipelineSchedules: Support
AutoSharding: Support Sharding CostModel Reshard IR/Enums.h
IR: Support Sharding
Models: Support IR
Import: Support IR Analysis
Analysis: Support IR Sharding CostModel Reshard PipelineSchedules
Report: Support IR Sharding CostModel Reshard PipelineSchedules Analysis
Transforms: Support IR Sharding CostModel Reshard PipelineSchedules AutoSharding Analysis Report
Interpreter: Support IR Sharding CostModel Reshard PipelineSchedules Analysis Report
Conversion: Support IR Analysis
Conversion/KernelEmitter: Support IR Analysis
Target: Support IR Sharding CostModel PipelineSchedules Analysis Report Conversion
Pipelines: Support IR Sharding CostModel Reshard PipelineSchedules AutoSharding Analysis Report Transforms Interpreter Conversion Target
CAPI: Support IR Models Report Target Pipelines Driver
WhatIf: Support IR Sharding CostModel Reshard PipelineSchedules AutoSharding Analysis Report Transforms Interpreter Conversion Target Pipelines
Driver: Support IR Import Sharding CostModel Reshard PipelineSchedules AutoSharding Analysis Report Transforms Interpreter Conversion Target Pipelines WhatIf
Advice: Support IR Models CostModel PipelineSchedules Analysis Report Pipelines WhatIf Driver
'

# say WHAT FOUND: reports the lines found, if any.
say_broken() {
  if [ -n "$2" ]; then
    printf '%s:\n%s\n' "$1" "$2"
    failed=1
  fi
}

# forbid WHAT PATTERN FOLDER...: no file of the folders includes PATTERN.
forbid() {
  local what=$1 pattern=$2
  shift 2
  say_broken "$what" "$(grep -rnE "#include [\"<]($pattern)" "$@" \
    --include='*.h' --include='*.cpp' || true)"
}

known=' '
while IFS=: read -r room allowed; do
  [ -n "$room" ] || continue
  folder=${room/#IR/Dialect/Shardc/IR}
  known+="${folder%%/*} "
  pattern=$folder/
  for other in $allowed; do
    other=${other/#IR/Dialect/Shardc/IR}
    case "$other" in *.h) ;; *) other+=/ ;; esac
    pattern+="|$other"
  done
  say_broken "$room includes a room that it must not" \
    "$(grep -rnE '#include "shardc/' "include/shardc/$folder" "lib/$folder" \
      --include='*.h' --include='*.cpp' 2>/dev/null |
      grep -vE "#include \"shardc/($pattern)" || true)"
done <<<"$rooms"
for folder in include/shardc/*/ lib/*/; do
  folder=$(basename "$folder")
  case "$known" in *" $folder "*) ;; *)
    say_broken 'a folder that scripts/check-layering.sh does not know' "$folder" ;;
  esac
done

# What partitioners compute with is plain C++: it can be read, tested and used
# without MLIR.
forbid 'a room without MLIR includes it' 'mlir/' lib/Support include/shardc/Support \
  {lib,include/shardc}/{Sharding,CostModel,Reshard,PipelineSchedules,AutoSharding}
say_broken 'the compiler includes the runtime' \
  "$(grep -rnE '#include [\"<]shardc-rt/' include lib |
    grep -v '^lib/Target/Plan/.*"shardc-rt/PlanFormat.h"' || true)"
forbid 'the runtime includes the compiler' 'mlir/|llvm/|shardc/' runtime
forbid 'the runtime core includes a vendor' 'cuda|nccl|mpi\.h' \
  runtime/include runtime/src/base runtime/src/comm runtime/src/plan runtime/src/exec \
  runtime/src/collectives runtime/src/data runtime/src/init runtime/src/train \
  runtime/src/checkpoint runtime/src/capi

# The methods of a class are defined in one source. Ops are excepted: TableGen
# declares them, and their verifiers, rules and gradients each have a source.
say_broken 'a class whose methods lie in several sources' \
  "$(grep -rPo '^(?![\s/#}])([^=;("]*[\s&*>])?\K(\w+::)*[A-Z]\w*(?=::~?\w+\()' \
    lib runtime/src tools --include='*.cpp' | grep -v '^lib/Dialect/Shardc/IR/' |
    sort -u | sed -E 's|^(.*)/([^/]*\.cpp):(.*)$|\1/\3 \2|' |
    awk '{ sources[$1] = sources[$1] " " $2; ++number[$1] }
      END { for (class in number) if (number[class] > 1)
        print class ":" sources[class] }' | sort)"
exit $failed
