#!/usr/bin/env bash
# The demo: a GPT-2 small transformer block from a graph file to fused kernels that run and are checked.
#     examples/demo.sh BUILD_FOLDER
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"
tenon=$build/bin/tenon
graph=gpt2_block.tn
data=$build/demo
batch=1

title() { printf '\n== %s\n\n' "$*"; }

title "What is here"
"$tenon" doctor | sed '/^environment/,$d'

title "The plan: every operator of $graph in seven kernels"
"$tenon" dump "$graph" --emit plan

title "One generated kernel (the first layer norm, for sm_90a)"
"$tenon" dump "$graph" --emit cuda --target sm_90a --kernel 0 --dim batch=$batch 2>/dev/null ||
  echo "skipped: no NVRTC (tenon doctor says how to get it)"

title "All kernels compiled for sm_90a"
for kernel in 0 1 2 3 4 5 6; do
  if "$tenon" dump "$graph" --emit cubin --target sm_90a --kernel $kernel --dim batch=$batch -o "$data.cubin" 2>/dev/null; then
    printf 'kernel %d: %d bytes of machine code\n' $kernel "$(stat -c %s "$data.cubin")"
  else
    echo "skipped: no NVRTC"
    break
  fi
done

title "Inputs at real size"
if [ ! -f "$data/w_out.npy" ]; then python3 make_gpt2_inputs.py "$data" $batch; fi
du -sh "$data"

title "Running it, and comparing with the interpreter"
inputs=()
for file in "$data"/*.npy; do
  name=$(basename "$file" .npy)
  [ "$name" = y ] || inputs+=(--input "$name=$file")
done
"$tenon" run "$graph" "${inputs[@]}" --output "y=$data/y.npy" --check

title "Time, kernels and bytes moved, fused against unfused"
"$tenon" bench "$graph" --dim batch=$batch --unfused
moved() {
  "$tenon" explain "$graph" --dim batch=$batch --json "$@" |
    python3 -c 'import json, sys; print("%.1f MB" % (sum(k["predicted"]["bytes"] for k in json.load(sys.stdin)["kernels"]) / 1e6))'
}
printf '\nmoved by the kernels: %s fused, %s unfused\n' "$(moved)" "$(moved --no-fuse)"
