# shellcheck shell=bash
# JAX as the peer of figures; sourced by gpu-check.sh, which has `skip`, `goal` and
# the figures of the plan measured last in `figure`.

# Why JAX is no peer here; empty if it is one.
python=${SHARDC_JAX_PYTHON:-python3} noPeer=

# With the caller's libraries, not with those of this folder.
inPython() {
  PATH=$callersPath LD_LIBRARY_PATH=$callersLibraries "$@"
}

if ! inPython "$python" -c 'import jax' &>/dev/null; then
  noPeer='JAX is not installed'
elif [ "$(inPython "$python" -c 'import jax; print(jax.default_backend())' 2>/dev/null)" != gpu ]; then
  noPeer='JAX has no GPU backend'
fi

# peerModel LAYERS OPTIMIZER BATCH PRECISION: as jax_peer.py takes it.
peerModel() {
  printf '{"layers": [%s], "loss": "mse", "optimizer": "%s", "batch": %s, ' "$1" "$2" "$3"
  printf '"strategy": "none", "mesh": null, "scan": 200, "precision": "%s"}' "$4"
}

# against WHAT MODEL VERB STEPS LEAST: the time of JAX's step over that of ours. The
# verb is how jax_peer.py runs steps.
against() {
  local what="$1: JAX's time over its own" replies jax
  if [ -n "$noPeer" ]; then
    skip "$what: no peer: $noPeer"
    return
  fi
  # The first two runs compile: the second one for a state that a step has made. JAX
  # leaves memory that it does not need to others.
  if ! replies=$(printf '%s\n' "model peer $2" "$3 peer 1" "$3 peer 1" "$3 peer $4" |
    XLA_PYTHON_CLIENT_PREALLOCATE=false inPython timeout 150 "$python" \
      "$here/jax_peer.py" 2>"$work/log") || [[ $replies == *'"error"'* ]]; then
    printf '%s\n' "$replies" >>"$work/log"
    wrongLine "$what: JAX failed" "$work/log"
    return
  fi
  jax=$(sed -n '$s/.*"seconds": \([^,]*\), "steps": \([0-9]*\).*/\1 \2/p' <<<"$replies" |
    awk '{ printf "%.6g", $1 / $2 * 1e6 }')
  goal "$what, $jax us over ${figure[step_us]} us" \
    "$(awk -v a="$jax" -v b="${figure[step_us]}" 'BEGIN { printf "%.3g", a / b }')" "$5"
}
