#!/usr/bin/env bash
# Random graphs on a GPU, fused = unfused = interpreter, until there were enough or time is up.
#     tools/gpu_random.sh BUILD_FOLDER RESULTS_FOLDER SECONDS [GRAPHS]
# A round is 16 batches side by side from one new seed, which is printed. In every eighth each kernel has a schedule
# drawn from all that are legal for it instead of the heuristics'; its graphs are not among those that GRAPHS asks for.
# Every log stays in RESULTS_FOLDER, and what differed is printed at its smallest, with the seed that makes it again
# (TENON_RANDOM_SEED). A round begins only while there is time for it. Exit code 1 when a graph differed or a batch did
# not end.
set -uo pipefail
if [ $# -lt 3 ]; then
  sed -n '2,8s/^# //p' "$0" >&2
  exit 2
fi
program=$(cd "$1" && pwd)/bin/tenon_random_test || exit 2
mkdir -p "$2" && results=$(cd "$2" && pwd) || exit 2
seconds=$3 wanted=${4:-1000000}
each=20 ran=0 drawn=0 code=0 longest=0 round=0
export TENON_TEST_REQUIRE=cuda TENON_RANDOM_TARGET=cuda TENON_RANDOM_COUNT=$((16 * each))
while [ $ran -lt "$wanted" ] && [ $((SECONDS + longest)) -lt "$seconds" ]; do
  begin=$SECONDS pids=()
  TENON_RANDOM_SEED=$((RANDOM * 32768 + RANDOM))
  TENON_RANDOM_SCHEDULES=$((round % 8 == 7 ? 2 : 0))
  export TENON_RANDOM_SEED TENON_RANDOM_SCHEDULES
  for i in {0..15}; do
    GTEST_TOTAL_SHARDS=16 GTEST_SHARD_INDEX=$i "$program" --gtest_filter='*RandomGraphs*' \
      >"$results/$round.$i.log" 2>&1 & pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || code=1; done
  passed=$(cat "$results/$round".*.log | grep -c '^\[  PASSED  \] 1 test')
  if [ $TENON_RANDOM_SCHEDULES -ne 0 ]; then
    drawn=$((drawn + passed * each)) what=", schedules drawn from all legal ones"
  else
    ran=$((ran + passed * each)) what=""
  fi
  echo "round $round from seed $TENON_RANDOM_SEED: $passed of 16 batches of $each passed$what"
  [ "$passed" -eq 16 ] || grep -ahA 60 'Failure$' "$results/$round".*.log
  round=$((round + 1))
  [ $((SECONDS - begin)) -le $longest ] || longest=$((SECONDS - begin))
done
echo "RANDOM: $ran graphs, fused and unfused; $drawn with schedules drawn from all legal ones"
exit $code
