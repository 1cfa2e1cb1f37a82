# What scripts with several processes share: they go on in a folder of their own,
# with the tools in the path, or end with exit code 77 where there is no MPI.
source "$(dirname "$0")/common.sh"
source_folder=$PWD
case "$build" in /*) ;; *) build=$PWD/$build ;; esac
PATH=$build/bin:$PATH
plugin=$build/lib/shardc/libshardc-rt-mpi.so
if ! command -v mpirun >/dev/null || [ ! -e "$plugin" ]; then
  echo "no MPI: nothing is checked"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# In containers the user is root, and there are more processes than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 TMPDIR=$work
cases=0 failed=0

losses() { sed 's/.*"loss":\([^,}]*\).*/\1/' "$1"; }

fail() {
  failed=$((failed + 1))
  printf 'FAILED: %s\n' "$1"
  tail -n 5 said
}

# expect WHAT CODE TEXT COMMAND...: the command ends with a code, and the text is
# printed once.
expect() {
  local what=$1 code=$2 text=$3 actual=0
  shift 3
  cases=$((cases + 1))
  "$@" &>said || actual=$?
  if [ "$actual" -ne "$code" ] || [ "$(grep -cF -- "$text" said)" -ne 1 ]; then
    fail "$what: exit code $actual instead of $code, or not once \"$text\""
  fi
}
