#!/usr/bin/env bash
# Python's package `safetensors` reads the parameters of a checkpoint by its index, and
# the files of --save-params and export; what it writes is loaded.
#
# Exit code 77 where packages of Python cannot be installed.
source "$(dirname "$0")/common.sh"
case "$build" in /*) ;; *) build=$PWD/$build ;; esac
packages=$build/safetensors
wanted=$PWD/scripts/requirements-safetensors.txt
mkdir -p "$packages"
skip() {
  echo "Python's safetensors did not read checkpoints: $1"
  exit 77
}
if ! cmp -s "$wanted" "$packages/installed.txt"; then
  python3 -m venv "$packages/venv" >"$packages/log" 2>&1 ||
    skip 'no virtual environment can be made'
  "$packages/venv/bin/pip" install -q --retries 1 --timeout 10 -r "$wanted" \
    >"$packages/log" 2>&1 || skip "no packages can be installed ($packages/log)"
  cp "$wanted" "$packages/installed.txt"
fi
PATH=$build/bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
shardc-gen --layers=64,33,10 --batch-size=96 --strategy=fsdp+tp --mesh=data=2,model=2 \
  --loss=softmax_cross_entropy --optimizer=adamw -o m.mlir
shardc-compile m.mlir -o m.shardc 2>said
run=(shardc-run m.shardc --data=digits --log-every=0)
"${run[@]}" --steps=8 --checkpoint-dir=c --save-params=saved.safetensors >said
shardc-checkpoint export c -o exported.npz >>said
shardc-checkpoint export c -o exported.safetensors >>said
"$packages/venv/bin/python" - <<'END'
import json, numpy, safetensors.numpy
from safetensors import safe_open

expected = dict(numpy.load("exported.npz"))
assert len(expected) == 4, expected.keys()

def compare(what, arrays):
    assert arrays.keys() == expected.keys(), (what, arrays.keys())
    for name, array in arrays.items():
        assert array.dtype == expected[name].dtype, (what, name)
        assert numpy.array_equal(array, expected[name]), (what, name)

folder = "c/step-8/"
for kind in "model", "optimizer":
    tensors = {}
    with open(f"{folder}{kind}.safetensors.index.json") as index:
        for name, file in json.load(index)["weight_map"].items():
            with safe_open(folder + file, framework="np") as opened:
                tensors[name] = opened.get_tensor(name)
    if kind == "model":
        compare("the checkpoint", tensors)
    else:
        assert int(tensors["step"]) == 8, tensors.keys()
for file in "saved.safetensors", "exported.safetensors":
    compare(file, safetensors.numpy.load_file(file))
safetensors.numpy.save_file(expected, "python.safetensors")
# By NumPy, compressed and not; wider numbers are rounded back.
numpy.savez("python.npz", **{name: array.astype("f8") for name, array in expected.items()})
numpy.savez_compressed("packed.npz", **expected)
END
for file in saved.safetensors python.safetensors python.npz packed.npz exported.npz; do
  "${run[@]}" --steps=1 --load-params="$file" --save-params=after.npz >said
  if [ "$file" = saved.safetensors ]; then cp after.npz first.npz; fi
  cmp first.npz after.npz
done
