#!/usr/bin/env bash
# scripts/gpu-check.sh packs a folder that is all it needs, runs to its end
# against the fake and says that it was one; a wrong number is said, and its exit code.
source "$(dirname "$0")/common.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts/gpu-check.sh --pack-fake "$work/packed"
# Nothing of this tree.
tree=$PWD
cd /
# run VARIABLE=VALUE FLAG...
run() { env -i PATH=/usr/bin:/bin "$1" "$work/packed/gpu-check.sh" "${@:2}"; }
# A Python without JAX.
printf '#!/bin/sh\nexit 1\n' >"$work/without"
# What looks like one with JAX and a GPU, whose steps take 2 s each.
cat >"$work/with" <<'EOF'
#!/bin/sh
case $2 in
"import jax") exit 0 ;;
"import jax;"*) echo gpu; exit 0 ;;
esac
while read -r verb name steps; do
  [ "$verb" = model ] && echo '{}' || echo "{\"seconds\": $((steps * 2)).0, \"steps\": $steps}"
done
EOF
chmod +x "$work"/with*
run SHARDC_JAX_PYTHON="$work/without" --logs="$work/logs" | tee "$work/output"
for text in '^FAKE: no GPU is involved' 'against the fake: nothing is known' \
  '^ok .*NCCL, ranks on one GPU: 4' '^ok .*wide, dp+tp' \
  '^ok .*zero-rows, none data=1' '^ok .*zero-rows, dp data=8' \
  '^not run .*4096-16384-4096, batch 8192, tf32: JAX.*no peer: JAX is not installed' \
  '^not run .*4096-16384-4096, batch 8192, bf16: JAX.*no peer: JAX is not installed' \
  '^not run .*10-32-16-1 in a loop of jitted steps: JAX.*no peer' \
  '^not run .*10-32-16-1 in a jitted loop .*no peer' '^ok .*peak memory' \
  '^figure .*4096-16384-4096.* over it: [0-9.]*[1-9]' '^figure .*10-32-16-1' '^figure .*Adam' \
  '^figure .*all-reduce' '^figure   recorded steps .*: [0-9.]*[1-9]' '^ok .*while steps are recorded' '^ok .*fsdp+tp .*in 4 processes' \
  '^ok .*pp stage=2, 1f1b, its stages on one GPU' \
  '^ok .*pp stage=2, 1f1b, in 2 processes' '^ok .*a machine file is measured' \
  '^ok .*fsdp+pp stage=2,data=2, zero-bubble, in 4 processes'; do
  grep -q -e "$text" "$work/output" || { echo "no line \"$text\""; exit 1; }
done
ls "$work/logs/notebook--none-data-1"* "$work/logs/figures-of-adam.log" >/dev/null
"$tree/scripts/gpu-check.sh" --estimates "$work/logs" >"$work/output"
for text in '^large-bf16 .*[0-9]' '^wide-none-data1 .*[0-9]' '^wide-fsdp-data8 .*[0-9]' '^by this GPU: median factor [0-9]'; do
  grep -q -e "$text" "$work/output" || { echo "no line \"$text\""; exit 1; }
done
[ "$(wc -l <"$work/output")" = 22 ] || { echo 'a plan has no estimate'; exit 1; }
run SHARDC_JAX_PYTHON="$work/with" --figures >"$work/output"
if grep -q '^ok .*notebook' "$work/output"; then
  echo 'it trains with --figures'
  exit 1
fi
for text in 'batch 8192, tf32' 'batch 8192, bf16' 'JAX fed from the host as ours is' \
  'loop of jitted steps' 'jitted loop (lax.scan)'; do
  grep -q -e "^figure .*$text: JAX's time over its own, 2e+06 us over .* us: [0-9.e+]* (goal \(1\|10\): of the fake)" \
    "$work/output" || { echo "no figure of JAX for \"$text\""; exit 1; }
done
sed -i 's/^\[[0-9.]*/[1.5/' "$work/packed/expected/notebook.json"
if run SHARDC_JAX_PYTHON="$work/without" --numbers >"$work/output"; then
  echo 'a wrong number is not noticed'
  exit 1
fi
for text in '^WRONG    notebook, none data=1' '^ok .*wide, dp+tp' ' 5 wrong, '; do
  grep -q -e "$text" "$work/output" || { echo "no line \"$text\""; exit 1; }
done
