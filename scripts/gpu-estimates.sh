# shellcheck shell=bash
# What gpu-check.sh does here with what a run there has left: a table of steps as
# the cost model estimates them with the rates of that GPU, and as measured.
# Sourced by it alone, for `here` and what it says of models and runs.

# flagsOf NAME: of shardc-gen, a bar, and of the compiler.
flagsOf() {
  local model run flags
  for model in "${models[@]}"; do
    for run in "${runs[@]}"; do
      [ "$(nameOf "${model%% *}" "${run% *}" "${run#* }")" != "$1" ] ||
        echo "${model#* } --strategy=${run% *} --mesh=${run#* } | $(dtypeOf "${model%% *}")"
    done
  done
  flags=$(measuredAs "$1")
  [ -z "$flags" ] || echo "--strategy=none --mesh=data=1 $flags"
}

# The built-in machine of the GPU of that name; empty: there is none.
machineOf() {
  case $1 in
  *H200*) echo h200 ;;
  *H100*) echo h100 ;;
  *A100*80GB*) echo a100-80 ;;
  *A100*) echo a100-40 ;;
  esac
}

# printEstimates LOGS
printEstimates() {
  local logs work machine known name step flags micros line files=()
  logs=$(cd "$1" && pwd)
  for name in machine.json steps; do
    [ -e "$logs/$name" ] || { echo "$logs has no $name: no GPU was measured" >&2; exit 1; }
  done
  cd "$here/.."
  PATH=${SHARDC_BUILD_DIR:-build}/bin:$PATH
  work=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" EXIT
  known=$(machineOf "$(python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["name"])' "$logs/machine.json")")
  files=("$logs/machine.json")
  if [ -n "$known" ]; then
    echo "{\"device\": \"$known\", \"shared\": true}" >"$work/known.json"
    files+=("$work/known.json")
  fi
  while read -r name step; do
    flags=$(flagsOf "$name")
    # shellcheck disable=SC2086
    shardc-gen ${flags%|*} -o "$work/model.mlir"
    line="$name $step"
    for machine in "${files[@]}"; do
      python3 -c 'import json, sys
machine = json.load(open(sys.argv[1]))
machine["f32_gemms"] = sys.argv[2]
print(json.dumps(machine))' "$machine" \
        "$([[ $flags == *precision=tf32* ]] && echo tf32 || echo f32)" >"$work/machine.json"
      # shellcheck disable=SC2086
      micros=$(SHARDC_PTXAS='' shardc-compile "$work/model.mlir" --target=cuda:sm_80 ${flags#*|} \
        --machine="$work/machine.json" --json -o "$work/model.shardc" |
        python3 -c 'import json, sys
print(json.load(sys.stdin)["time"]["microseconds"])')
      line+=" $micros"
    done
    echo "$line"
  done <"$logs/steps" >"$work/table"
  PYTHONPATH=benchmarks/goals python3 - "$work/table" "${known:-no built-in machine}" <<'EOF'
import statistics, sys
from estimates import spearman

rows = [(name, [float(number) for number in numbers]) for name, *numbers in map(str.split, open(sys.argv[1]))]
machines = ["this GPU", sys.argv[2]][: len(rows[0][1]) - 1]
print(f"steps on one GPU, us; factor\n{'':24}{'measured':>12}", *(f"{'by ' + machine:>22}" for machine in machines))
factors = [[] for _ in machines]
for name, (measured, *estimates) in rows:
    for of_machine, estimate in zip(factors, estimates):
        of_machine.append(max(measured / estimate, estimate / measured))
    print(f"{name:24}{measured:12.5g}", *(f"{e:14.5g}{f[-1]:8.3g}" for e, f in zip(estimates, factors)))
for number, (machine, of_machine) in enumerate(zip(machines, factors), 1):
    rank = spearman([numbers[0] for _, numbers in rows], [numbers[number] for _, numbers in rows])
    print(f"by {machine}: median factor {statistics.median(of_machine):.3g}, worst {max(of_machine):.3g},"
          f" rank correlation (Spearman) {rank:.2f}")
EOF
}
