#!/usr/bin/env bash
# Opens pages of shardc-compile --report=html in a browser without a window and
# tests what a reader does with them. Exit code 77 (skipped) where there is no
# chromium with its driver.
source "$(dirname "$0")/common.sh"
for program in chromium chromedriver; do
  command -v "$program" >/dev/null || { echo "no $program"; exit 77; }
done
PATH="$PWD/$build/bin:$build/bin:$PATH" exec python3 scripts/check_report.py "$@"
