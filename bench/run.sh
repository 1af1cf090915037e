#!/usr/bin/env bash
# Tenon and its peers on the benchmark cases, in one go on one device.
#     bench/run.sh BUILD_FOLDER RESULTS_FOLDER [REGEX]
# REGEX picks cases by name (default: all). From the environment: TARGET (cuda, or cpu with the cases of cases/cpu),
# SECONDS_EACH (0.2; time for each measurement), PEERS (eager,compile; max is torch.compile's max-autotune), BUDGET
# (seconds after which the peers begin no case). Writes tenon.json, peers.json (where Python finds PyTorch), machine.txt, table.md, chart.svg and roofline.svg. Exit code 1
# when a case failed or left an element unwritten.
set -uo pipefail
if [ $# -lt 2 ]; then
  sed -n '2,7s/^# //p' "$0" >&2
  exit 2
fi
tenon=$(cd "$1" && pwd)/bin/tenon || exit 2
mkdir -p "$2" && results=$(cd "$2" && pwd) || exit 2
regex=${3:-.}
target=${TARGET:-cuda} seconds=${SECONDS_EACH:-0.2}
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 2

cases=() names='' folder=cases
[ "$target" = cpu ] && folder=cases/cpu
for file in $folder/*.tn; do
  name=${file##*/}
  grep -qE -- "$regex" <<<"${name%.tn}" && cases+=("$file") && names+="|${name%.tn}"
done
[ ${#cases[@]} -gt 0 ] || { echo "no case matches $regex" >&2; exit 2; }

{
  date -u +%Y-%m-%dT%H:%MZ
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.mem,clocks.max.sm,power.limit --format=csv 2>/dev/null
  "$tenon" doctor
} >"$results/machine.txt" 2>&1

code=0
"$tenon" bench "${cases[@]}" --target "$target" --seconds "$seconds" -o "$results/tenon.json" || code=1
peers=()
# PyTorch's results are new memory at each call: on a CPU let it be memory that was freed, not pages to be made.
[ "$target" = cpu ] && export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=1000000000000
if python3 -c 'import torch' 2>/dev/null; then
  python3 peers.py --cases "^(${names#|})\$" --peers "${PEERS:-eager,compile}" --device "$target" --seconds "$seconds" \
    --budget "${BUDGET:-inf}" --out "$results/peers.json" && peers=("$results/peers.json")
else
  echo "no PyTorch here: no peers"
fi
python3 compare.py "$results/tenon.json" "${peers[@]}" -o "$results/table.md" --svg "$results/chart.svg" \
  --roofline "$results/roofline.svg" || code=1
cat "$results/table.md"
exit $code
