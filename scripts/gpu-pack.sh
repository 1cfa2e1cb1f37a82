# shellcheck shell=bash
# What gpu-check.sh does here: it packs the folder that is carried to the GPU.
# Sourced by it alone, for `here` and what it says of models and runs.

# compile FOLDER NAME FLAG...: the plan of FOLDER/model.mlir for a GPU.
compile() {
  local folder=$1 name=$2
  shift 2
  shardc-compile "$folder/model.mlir" --target=cuda:sm_80 "$@" \
    -o "$folder/plans/$name.shardc" 2>>"$folder/log"
  [ -d "$folder/fake" ] || return 0
  shardc-compile "$folder/model.mlir" --target=emulated-gpu "$@" \
    -o "$folder/emulated.shardc" 2>>"$folder/log"
  extract-code "$folder/emulated.shardc" "$folder/fake/$name.so"
}

pack() {
  local folder=$1 fake=$2 binary library model run
  [ ! -e "$folder" ] || { echo "$folder is there already" >&2; exit 1; }
  cd "$here/.."
  local build=${SHARDC_BUILD_DIR:-build}
  case "$build" in /*) ;; *) build=$PWD/$build ;; esac
  PATH=$build/bin:$PATH
  # The driver there compiles PTX for the GPU that it has.
  export SHARDC_PTXAS=
  mkdir -p "$folder"/{bin,lib,plans,expected,data}
  folder=$(cd "$folder" && pwd)
  if [ "$fake" = 1 ]; then
    mkdir "$folder/fake"
    cp "$build/bin/shardc-rt-fake.so" "$folder/fake"
  fi
  cp scripts/gpu-check.sh scripts/{run-ranks,free-port,gpu-peer}.sh \
    benchmarks/goals/jax_peer.py "$folder"
  cp data/digits.npz "$folder/data"
  for binary in shardc-run shardc-rt-cts measure-gpu compare-training; do
    cp "$build/bin/$binary" "$folder/bin"
  done
  strip "$folder"/bin/*
  # All but the C library, which has to fit the machine's driver.
  for library in $(ldd "$folder"/bin/* | awk '$3 ~ /^\// {print $3}' | sort -u); do
    case $library in
    */libc.so.* | */libm.so.* | */libpthread.so.* | */libdl.so.* | */librt.so.*) ;;
    *) cp -L "$library" "$folder/lib" ;;
    esac
  done
  make-data labels 512 784,1024,1024,10 "$folder/data/wide.npz"
  make-data zero-rows 480 320,320,320 "$folder/data/zero-rows.npz"
  # The fake multiplies an element after the other.
  [ "$fake" = 0 ] || models=("${models[@]//1024,1024/96,96}")
  for model in "${models[@]}"; do
    local name=${model%% *} flags=${model#* }
    local -a all
    mapfile -t all < <(runsOf "$name")
    [ "$name" != digits ] || all+=("${rankRuns[@]}" "${pipelineRuns[@]}")
    for run in "${all[@]}"; do
      local strategy mesh schedule
      read -r strategy mesh schedule <<<"$run"
      # shellcheck disable=SC2086
      shardc-gen $flags --strategy="$strategy" --mesh="$mesh" \
        ${schedule:+--pipeline-schedule="$schedule" --microbatches=4} \
        -o "$folder/model.mlir"
      # shellcheck disable=SC2046
      compile "$folder" "$(nameOf "$name" "$strategy" "$mesh")" $(dtypeOf "$name")
      [ "$strategy" = none ] || continue
      # shellcheck disable=SC2046
      shardc-run "$folder/model.mlir" $(dtypeOf "$name") --data="$(dataOf "$name" "$folder")" \
        --steps=10 --seed=3 --metrics="$folder/metrics.jsonl" \
        --save-params="$folder/expected/$name.npz" &>>"$folder/log"
      sed 's/.*"loss":\([^,}]*\).*/\1/' "$folder/metrics.jsonl" | paste -sd, |
        sed 's/.*/[&]/' >"$folder/expected/$name.json"
    done
  done
  # Figures; smaller where they mean nothing.
  local entry smaller=()
  [ "$fake" = 0 ] || smaller=(-e 's/size=[0-9]\{3,\}/size=64/; s/[0-9]\{4,\}/256/g')
  for entry in "${measured[@]}"; do
    flags=$(sed -e '' "${smaller[@]}" <<<"${entry#* }")
    # shellcheck disable=SC2086
    shardc-gen ${flags%|*} --strategy=none --mesh=data=1 -o "$folder/model.mlir"
    # shellcheck disable=SC2086
    compile "$folder" "${entry%% *}" ${flags#*|}
  done
  flags=$(measuredAs adam | sed -e '' "${smaller[@]}")
  # shellcheck disable=SC2086
  shardc-gen ${flags%|*} --strategy=dp --mesh=data=8 -o "$folder/model.mlir"
  compile "$folder" all-reduce
  rm -f "$folder"/{model.mlir,emulated.shardc,metrics.jsonl,log}
  local mebibytes=$(($(du -sk "$folder" | cut -f1) / 1024))
  echo "$folder: $mebibytes MiB, $(find "$folder/plans" -name '*.shardc' | wc -l) plans"
  [ "$mebibytes" -lt 60 ] || { echo "more than 60 MiB" >&2; exit 1; }
}
