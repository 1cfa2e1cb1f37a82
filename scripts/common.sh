# Shared by the scripts: paths, installing, building. Sourced, not run.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${SHARDC_BUILD_DIR:-build}

# What scripts check is compiled anew, and for GPUs to PTX alone: no fake runs
# machine code.
export SHARDC_PLAN_CACHE= SHARDC_PTXAS=${SHARDC_PTXAS-}

# takeEvery [MODULUS REMAINDER]: of the cases of a script, every MODULUS-th from the
# REMAINDER-th on; all by default. Tests take a part where all take minutes.
takeEvery() { modulus=${1:-1} remainder=${2:-0} number=0; }

# Whether the next case is one of them.
isTaken() {
  number=$((number + 1))
  [ $((number % modulus)) -eq "$remainder" ]
}

say() { printf '\n==> %s\n' "$*"; }

# Precompiled headers and ccache go together with these.
export CCACHE_SLOPPINESS=pch_defines,time_macros

# Installs the Debian packages that are missing, if any.
install_packages() {
  local missing=()
  local package
  while read -r package; do
    case "$package" in '' | '#'*) continue ;; esac
    if ! dpkg-query -W -f='${Status}' "$package" 2>/dev/null |
        grep -q 'install ok installed'; then
      missing+=("$package")
    fi
  done <scripts/packages.txt
  if [ ${#missing[@]} -eq 0 ]; then
    say "All packages are installed"
    return
  fi
  say "Installing ${missing[*]}"
  local sudo=
  if [ "$(id -u)" -ne 0 ]; then sudo=sudo; fi
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq \
    --no-install-recommends "${missing[@]}" </dev/null
}

# From nothing, sources that are compiled many at once take less than a third of the time.
unity=(-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=24)

# Configures and builds the targets given, or everything.
build_shardc() {
  say "Building in $build/ (the first time takes some minutes)"
  local launcher=()
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache
      -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSHARDC_WERROR=ON \
    "${unity[@]}" "${launcher[@]}" >"$build.configure.log" 2>&1 || {
    cat "$build.configure.log"
    exit 1
  }
  rm -f "$build.configure.log"
  ninja -C "$build" "$@"
}
