#!/usr/bin/env bash
# The demo: a GPT-2 small transformer block from a graph file to fused kernels that run and are checked, and at the end
# what fusing gains on a GELU.
#     examples/demo.sh BUILD_FOLDER
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"
tenon=$build/bin/tenon
graph=gpt2_block.tn
data=$build/demo
batch=1
mkdir -p "$data/logs"

# step TITLE FUNCTION: runs the function, keeps what it says in a log, and says how long it took.
step() {
  local log=$data/logs/$2.log begin=$SECONDS
  printf '\n== %s\n\n' "$1"
  "$2" | tee "$log"  # what is waited for stays on the terminal
  printf -- '-- %d s, %d s in all; log: %s\n' $((SECONDS - begin)) "$SECONDS" "$log"
}

found() { "$tenon" doctor | sed '/^environment/,$d'; }

plan() { "$tenon" dump "$graph" --emit plan; }

kernel() {
  "$tenon" dump "$graph" --emit cuda --no-prelude --target sm_90a --kernel 0 --dim batch=$batch 2>/dev/null ||
    echo "skipped: no NVRTC (tenon doctor says how to get it)"
}

cubins() {
  local kernel
  for kernel in 0 1 2 3 4 5 6; do
    if "$tenon" dump "$graph" --emit cubin --target sm_90a --kernel $kernel --dim batch=$batch -o "$data.cubin" 2>/dev/null; then
      printf 'kernel %d: %d bytes of machine code\n' $kernel "$(stat -c %s "$data.cubin")"
    else
      echo "skipped: no NVRTC"
      break
    fi
  done
}

inputs() {
  if [ ! -f "$data/w_out.npy" ]; then python3 make_gpt2_inputs.py "$data" $batch; fi
  du -sh "$data"
}

checked_run() {
  local given=() file name
  for file in "$data"/*.npy; do
    name=$(basename "$file" .npy)
    [ "$name" = y ] || given+=(--input "$name=$file")
  done
  "$tenon" run "$graph" "${given[@]}" --output "y=$data/y.npy" --check
}

block_times() {
  "$tenon" bench "$graph" --dim batch=$batch --unfused
  printf '\nmoved by the kernels: %s fused, %s unfused\n' "$(moved)" "$(moved --no-fuse)"
}
moved() {
  "$tenon" explain "$graph" --dim batch=$batch --json "$@" |
    python3 -c 'import json, sys; print("%.1f MB" % (sum(k["predicted"]["bytes"] for k in json.load(sys.stdin)["kernels"]) / 1e6))'
}

gelu_times() {
  "$tenon" bench gelu_tanh.tn --dim rows=4096 --unfused -o "$data/gelu.json"
  python3 - "$data/gelu.json" <<'END'
import json, sys
case = json.load(open(sys.argv[1]))["cases"][0]
print("\nGELU of %.0f million numbers: %.1f ms in %d kernel, %.1f ms in %d. Fused it is %.1f times as fast." % (
    case["bytes"] / 8e6, case["ms"], case["kernels"], case["unfused_ms"], case["unfused_kernels"],
    case["unfused_ms"] / case["ms"]))
END
}

step "What is here" found
step "The plan: every operator of $graph in seven kernels" plan
step "One generated kernel (the first layer norm, for sm_90a), without the pieces that kernels share" kernel
step "All kernels compiled for sm_90a" cubins
step "Inputs at real size" inputs
step "Running it, and comparing with the interpreter" checked_run
step "Time, kernels and bytes moved of the block, fused against unfused" block_times
step "A GELU, fused against unfused" gelu_times
