#!/usr/bin/env bash
# Makes docs/report.png, the picture at the top of the README, from a page of
# shardc-compile --report=html in Chromium.
source "$(dirname "$0")/common.sh"
PATH="$PWD/$build/bin:$build/bin:$PATH" exec python3 scripts/draw_report.py docs/report.png
