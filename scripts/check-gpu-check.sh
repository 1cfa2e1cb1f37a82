#!/usr/bin/env bash
# scripts/gpu-check.sh packs a folder that is all it needs, runs to its end
# against the stand-in and says that it was one; and it ends at a wrong number.
source "$(dirname "$0")/common.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts/gpu-check.sh --pack-stand-in "$work/packed"
# Nothing of this tree.
cd /
run() { env -i PATH=/usr/bin:/bin "$work/packed/gpu-check.sh"; }
run | tee "$work/output"
for text in '^STAND-IN: no GPU is involved' 'against the stand-in: nothing is known' \
  '^ok .*NCCL, ranks on one GPU: 4' '^ok .*wide, dp+tp' '^not run .*against JAX' \
  '^figure .*4096-16384-4096.* over it: [0-9.]*[1-9]' '^figure .*10-32-16-1' '^figure .*Adam' \
  '^figure .*all-reduce' '^ok .*in 4 processes'; do
  grep -q -e "$text" "$work/output" || { echo "no line \"$text\""; exit 1; }
done
sed -i 's/^\[[0-9.]*/[1.5/' "$work/packed/expected/notebook.json"
if run >"$work/output"; then
  echo 'a wrong number is not noticed'
  exit 1
fi
grep -q '^WRONG    notebook, none data=1' "$work/output"
if grep -q 'digits' "$work/output"; then
  echo 'it goes on after a wrong number'
  exit 1
fi
