#!/usr/bin/env bash
# Looks for inputs that break a parser: fuzz.sh FOLDER SECONDS FUZZER.... The fuzzers, which are in FOLDER, share the time. What is
# found stays in FOLDER/../found, for the next time; of that, what reaches something new goes to tests/fuzz/corpus. Ends with 1
# at the first input that breaks something: its file is said.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1
fuzzers=("${@:3}")
seconds=$(($2 / ${#fuzzers[@]}))
[ "$seconds" -gt 0 ] || { echo "fuzz: ${#fuzzers[@]} parsers need as many seconds at least" >&2; exit 2; }

for fuzzer in "${fuzzers[@]}"; do
    corpus=tests/fuzz/corpus/$fuzzer
    found=$folder/../found/$fuzzer
    log=$found.log
    mkdir -p "$found" "$corpus"
    printf '  %-16s' "$fuzzer"
    "$folder/fuzz_$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=16384 -artifact_prefix="$found." \
        "$found" "$corpus" >"$log" 2>&1 || { echo "broken: "; tail -n 30 "$log"; exit 1; }
    before=$(find "$corpus" -type f | wc -l)
    "$folder/fuzz_$fuzzer" -merge=1 -use_counters=0 -max_len=4096 "$corpus" "$found" >>"$log" 2>&1
    echo "$(sed -n 's/^Done \([0-9]*\) runs in.*/\1/p' "$log") inputs, $(($(find "$corpus" -type f | wc -l) - before)) of them new to the corpus"
done
