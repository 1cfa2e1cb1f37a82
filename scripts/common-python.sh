# Shared by the scripts of Python: a virtual environment in the build folder, with the
# packages of python/requirements-test.txt. Sourced behind common.sh, not run.

case "$build" in /*) ;; *) build=$PWD/$build ;; esac
work=$build/python
mkdir -p "$work"

# skip WHY: ends the script with exit code 77, which ctest takes for a skipped test.
skip() {
  echo "$(basename "$0") did not run: $1"
  exit 77
}

# Makes the environment $work/venv, unless it is there. Several scripts may do so at once.
make_venv() {
  exec 9>"$work/lock"
  flock 9
  if ! cmp -s python/requirements-test.txt "$work/installed.txt"; then
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip 'Python is older than 3.11'
    python3 -m venv "$work/venv" >"$work/log" 2>&1 || skip 'no virtual environment can be made'
    "$work/venv/bin/pip" install -q --retries 1 --timeout 10 -r python/requirements-test.txt \
      >"$work/log" 2>&1 || skip "no packages can be installed ($work/log)"
    cp python/requirements-test.txt "$work/installed.txt"
  fi
  exec 9>&-
}
