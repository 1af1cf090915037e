#!/usr/bin/env bash
# The benchmark cases in one go on one device: the peers, Tenon, and the peers again, to see whether the device drifted.
#     bench/run.sh BUILD_FOLDER RESULTS_FOLDER [GLOB...]
# GLOBs pick cases by name, and 'matmul/*' those of cases/matmul, 'attention/*' attention, 'shapes/*' single operators of many
# shapes, 'models/*' whole models (default: all). From the environment: TARGET (cuda, or cpu with the cases of cases/cpu),
# SECONDS_EACH (0.2; time for each measurement), PEERS (eager,compile,cudnn,flash,flex: the last three are for attention; max
# is torch.compile's max-autotune; none leaves Tenon alone), BUDGET (whole seconds for all; what is not begun in time is
# listed).
# Writes tenon.json, peers-1.json and peers-2.json (where Python finds PyTorch), machine.txt, table.md, chart.svg and
# roofline.svg. Exit code 1 when a case of Tenon's failed or left an element unwritten, or the peers' process failed.
set -uo pipefail
if [ $# -lt 2 ]; then
  sed -n '2,10s/^# //p' "$0" >&2
  exit 2
fi
tenon=$(cd "$1" && pwd)/bin/tenon || exit 2
mkdir -p "$2" && results=$(cd "$2" && pwd) || exit 2
shift 2
globs=("$@")
[ $# -gt 0 ] || globs=('*')
target=${TARGET:-cuda} seconds=${SECONDS_EACH:-0.2} budget=${BUDGET:-inf} peers=${PEERS:-eager,compile,cudnn,flash,flex}
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 2

picked() {  # PATH below cases/, by its name or as it is
  local path=${1%.tn} glob
  for glob in "${globs[@]}"; do
    # shellcheck disable=SC2053  # a pattern, not a text
    [[ $path == $glob || ${path##*/} == $glob ]] && return 0
  done
  return 1
}

cases=() names='' files=(cases/*.tn cases/attention/*.tn cases/matmul/*.tn cases/models/*.tn cases/shapes/*.tn)
[ "$target" = cpu ] && files=(cases/cpu/*.tn)
for file in "${files[@]}"; do
  name=${file##*/}
  picked "${file#cases/}" && cases+=("$file") && names+="|${name%.tn}"
done
[ ${#cases[@]} -gt 0 ] || { echo "no case matches ${globs[*]}" >&2; exit 2; }
rm -f "$results"/{tenon,peers-1,peers-2}.json

{
  date -u +%Y-%m-%dT%H:%MZ
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.mem,clocks.max.sm,power.limit --format=csv 2>/dev/null
  "$tenon" doctor
} >"$results/machine.txt" 2>&1

until_percent() {  # PERCENT: seconds from now until so much of the budget is spent
  if [ "$budget" = inf ]; then echo inf; else echo $((budget * $1 / 100 - SECONDS)); fi
}

code=0 peer_files=()
time_peers() {  # RUN PERCENT; a measurement that is under way may take 30 s longer
  local out="$results/peers-$1.json" left before=()
  left=$(until_percent "$2")
  [ "$budget" = inf ] || before=(timeout $((left > 0 ? left + 30 : 30)))
  # PyTorch's results are new memory at each call: on a CPU let it be memory that was freed, not pages to be made.
  [ "$target" = cpu ] && before=(env MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=1000000000000 "${before[@]}")
  "${before[@]}" python3 peers.py --cases "^(${names#|})\$" --peers "$peers" --device "$target" --seconds "$seconds" \
    --budget "$left" --out "$out" || { echo "run $1 of the peers ended with $?" >&2; code=1; }
  [ -e "$out" ] && peer_files+=("$out")
}

if [ "$peers" != none ] && ! python3 -c 'import torch' 2>/dev/null; then
  echo "no PyTorch here: no peers"
  peers=none
fi
SECONDS=0
# The first run compiles what the second finds in its caches, so it may take half of the budget.
[ "$peers" = none ] || time_peers 1 50
python3 tenon_times.py "$tenon" "${cases[@]}" --target "$target" --seconds "$seconds" --budget "$(until_percent 75)" \
  --out "$results/tenon.json" || code=1
[ "$peers" = none ] || time_peers 2 100
python3 compare.py "$results/tenon.json" "${peer_files[@]}" -o "$results/table.md" --svg "$results/chart.svg" \
  --roofline "$results/roofline.svg" || code=1
cat "$results/table.md"
exit $code
