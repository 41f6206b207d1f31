#!/usr/bin/env bash
# The scanner's verdict on mutated recordings equals Go's json.Valid and utf8.Valid, both ways.
# Prints the seed; KINF_TEST_SEED repeats a run.
set -euo pipefail
cd "$(dirname "$0")/.."

seed=${KINF_TEST_SEED:-$(date +%s)}
n=${KINF_RECORDS:-100000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

make --no-print-directory -s MODE=release build/release/oracle/scan_records
echo "seed $seed, $n records"
build/release/oracle/scan_records write tests/data/transcripts "$seed" "$n" "$work/records"
build/release/oracle/scan_records judge "$work/records" >"$work/ours"
build/cluster/bin/jsonvalid "$work/records" >"$work/go"
if ! cmp "$work/ours" "$work/go"; then
    echo "the scanner and Go disagree (KINF_TEST_SEED=$seed)"
    exit 1
fi
echo "equal: $(tr -cd 1 <"$work/go" | wc -c) valid, $(tr -cd 0 <"$work/go" | wc -c) invalid"
