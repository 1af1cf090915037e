#!/usr/bin/env bash
# Everything that needs a GPU, in one go and in under 9 minutes: the tests, compute-sanitizer, times.
#     tools/gpu_suite.sh BUILD_FOLDER RESULTS_FOLDER [RANDOM_GRAPHS]
# Run from anywhere; BUILD_FOLDER is made by the `gpu` preset (no LLVM), here or on another machine. Needs a driver and
# NVRTC; compute-sanitizer where installed. Each stage has its own time limit and its own log in RESULTS_FOLDER; one
# that fails does not stop the others. The table comes last and is RESULTS_FOLDER/summary.txt. Exit code 1 when any
# stage failed.
set -uo pipefail
if [ $# -lt 2 ]; then
  sed -n '2,7s/^# //p' "$0" >&2
  exit 2
fi
bin=$(cd "$1" && pwd)/bin || exit 2
mkdir -p "$2" && results=$(cd "$2" && pwd) || exit 2
graphs=${3:-3000}
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2

export TENON_TEST_REQUIRE=cuda GTEST_BRIEF=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TENON_CACHE_DIR=$work/cache
sanitizer=$(command -v compute-sanitizer || ls -d /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -n 1)
begin=$SECONDS
failed=0
rows=()

# stage NAME SECONDS COMMAND…: a row of the table, and a log.
stage() {
  local name=$1 limit=$2 start=$SECONDS code=0 verdict=passed note
  shift 2
  printf '== %s\n' "$name"
  timeout -k 5 "$limit" "$@" >"$results/$name.log" 2>&1 || code=$?
  case $code in
    0) ;;
    124 | 137) verdict="no end in ${limit}s" ;;
    *) verdict="FAILED ($code)" ;;
  esac
  [ $code -eq 0 ] || failed=1
  note=$(grep -aoE '^\[  PASSED  \] [0-9]+ tests?|^ *[0-9]+ FAILED TESTS?|ERROR SUMMARY: .*|RACECHECK SUMMARY: .*|^RANDOM: .*' \
    "$results/$name.log" | tail -n 2 | tr -s ' \n' ' ')
  [ $code -eq 0 ] || grep -aE '^\[  FAILED  \] .*[a-z]|error:|Failure' "$results/$name.log" | sort -u | head -n 5
  rows+=("$(printf '%-22s %-16s %4ss  %s' "$name" "$verdict" $((SECONDS - start)) "$note")")
}

skip() { rows+=("$(printf '%-22s %-16s %5s  %s' "$1" skipped - "$2")"); }

# sharded NAME SECONDS SHARDS COMMAND…: the shards of a gtest program side by side.
sharded() {
  local name=$1 limit=$2 count=$3
  shift 3
  stage "$name" "$limit" bash -c '
    count=$0; log=$1; shift; pids=(); code=0
    for ((i = 0; i < count; ++i)); do
      GTEST_TOTAL_SHARDS=$count GTEST_SHARD_INDEX=$i "$@" >"$log.$i" 2>&1 & pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || code=1; done
    cat "$log".*; exit $code' "$count" "$work/$name" "$@"
}

shards=$(nproc 2>/dev/null || echo 4)
[ "$shards" -le 16 ] || shards=16

{
  date -u +%Y-%m-%dT%H:%MZ
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null
  "$bin/tenon" version
  "$bin/tenon" doctor
} >"$results/machine.txt" 2>&1
sed -n 2p "$results/machine.txt"

# What everything rests on first, the longest last, so that a short session still says most.
stage runtime 60 "$bin/tenon_runtime_test"
sharded codegen 120 3 "$bin/tenon_codegen_test" --gtest_filter='*Gpu*:*GPU*:*Device*'
stage kernel_sample 60 "$bin/tenon_gpu_test" --gtest_filter='*KernelSample*cuda*'
stage launch 60 "$bin/tenon_gpu_test" --gtest_filter='Launch.*'
stage figures 90 env GTEST_BRIEF=0 "$bin/tenon_gpu_test" --gtest_filter='HostCost.*:CompileTime.*:Replay.*:GpuProfile.*'
if [ -n "$sanitizer" ]; then
  export TENON_CACHE_DIR=$work/sanitizer  # the same kernels for both tools
  stage memcheck 100 "$sanitizer" --tool memcheck --error-exitcode 9 --leak-check no \
    "$bin/tenon_gpu_test" --gtest_filter='*KernelSample*cuda*'
  stage racecheck 100 "$sanitizer" --tool racecheck --error-exitcode 9 \
    "$bin/tenon_gpu_test" --gtest_filter='*KernelSample*cuda*'
  export TENON_CACHE_DIR=$work/cache
else
  skip memcheck "no compute-sanitizer here"
  skip racecheck "no compute-sanitizer here"
fi
sharded numerics 150 "$shards" "$bin/tenon_numerics_test" --gtest_filter='*cuda*-*cuda_on_host*'
stage bench 60 "$bin/tenon" bench examples/gelu_tanh.tn examples/softmax.tn examples/layer_norm.tn \
  examples/rms_norm_residual.tn examples/swiglu.tn examples/mlp.tn --target cuda --dim rows=8192 --seconds 0.2 --unfused
stage bench_block 40 "$bin/tenon" bench examples/gpt2_block.tn --target cuda --dim batch=8 --seconds 0.2 --unfused
stage bench_attention 40 "$bin/tenon" bench examples/attention.tn --target cuda --dim batch=2 --dim seq=2048 --seconds 0.2 --unfused
# In a cache of its own: the other stages plan by the assumptions.
stage planner 60 env TENON_CACHE_DIR="$work/calibrated" bash -c '
  "$0" calibrate --target cuda || exit
  "$0" explain examples/gpt2_block.tn --target cuda --measure --dim batch=8 || exit
  "$0" explain examples/softmax.tn --target cuda --measure --dim rows=16384 || exit
  "$0" explain examples/layer_norm.tn --target cuda --measure --dim rows=16384' "$bin/tenon"
stage tune 60 env TENON_CACHE_DIR="$work/tuned" "$bin/tenon" tune examples/softmax.tn examples/layer_norm.tn \
  examples/gelu_tanh.tn --target cuda --dim rows=4096 --seconds 0.01
stage first 30 env TENON_CACHE_DIR="$work/first" bash -c '
  for cache in empty filled; do "$0" bench examples/gelu_tanh.tn --first --target cuda --dim rows=4096 || exit; done' \
  "$bin/tenon"
# Random graphs by the hundred, until there were enough or time is up.
left=$((520 - (SECONDS - begin)))
[ $left -ge 40 ] || left=40
[ $left -le 240 ] || left=240
stage random $((left + 60)) tools/gpu_random.sh "$bin/.." "$results/random" "$left" "$graphs"

{
  head -n 3 "$results/machine.txt"
  echo
  printf '%s\n' "${rows[@]}"
  echo
  echo "figure | measured | bar |"
  grep -ah '^FIGURE' "$results/figures.log" | sed 's/^FIGURE //'
  echo
  cat "$results"/bench*.log
  grep -aE '^kernel|^together|^[a-z0-9_]+ +[0-9.e+]+ +[0-9.e+]+$' "$results/planner.log"
  echo
  printf '%s s in all\n' $((SECONDS - begin))
} >"$results/summary.txt"
cat "$results/summary.txt"
exit $failed
