#!/usr/bin/env bash
# Runs unit test programs, one process a file: run-unit-tests.sh MODE PROGRAM...
# Prints one line a program, and the whole output of one that fails.
set -euo pipefail

mode=$1
shift
export UBSAN_OPTIONS=print_stacktrace=1
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
export KINF_TEST_MODE=$mode

failed=0
passed=0
for program in "$@"; do
    output=$(mktemp)
    started=$(date +%s)
    if timeout 600 "$program" >"$output" 2>&1; then
        n=$(grep -c '^\[       OK' "$output" || true)
        echo "  ok      $mode $(basename "$program"): $n tests, $(($(date +%s) - started)) s"
        passed=$((passed + n))
    else
        echo "  FAILED  $mode $(basename "$program")"
        cat "$output"
        failed=$((failed + 1))
    fi
    rm -f "$output"
done
echo "unit tests ($mode): $passed passed, $failed programs failed"
[ "$failed" -eq 0 ]
