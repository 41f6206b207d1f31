#!/usr/bin/env bash
# Runs unit test programs, one process a file and two at a time on each processor, since much of their time is
# waiting: run-unit-tests.sh MODE PROGRAM...
# MODE "valgrind": each in valgrind, of programs that were built without a sanitizer; "arm64": each in an emulator.
# Prints one line a program, and the whole output of one that fails; what it failed by goes to the file that
# KINF_TEST_FAILURES names, too.
set -euo pipefail

mode=$1
shift
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
export mode results
export UBSAN_OPTIONS=print_stacktrace=1
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
export KINF_TEST_MODE=$mode

limit=600
under=
at_once=$((2 * $(nproc)))
if [ "$mode" = valgrind ]; then
    limit=3600
    at_once=$(nproc)
    under="valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,possible --fair-sched=yes"
elif [ "$mode" = arm64 ]; then
    at_once=$(nproc)
    under=qemu-aarch64-static
fi
export limit under

run_program() {
    local name output started seconds n said status=0

    name=$(basename "$1")
    output=$results/$name.output
    started=$(date +%s)
    timeout "$limit" $under "$1" >"$output" 2>&1 || status=$?
    if [ "$status" -eq 0 ]; then
        n=$(grep -c '^\[       OK' "$output" || true)
        sed -n "s/^not in valgrind: /skipped     1: $name: /p" "$output" >>"$results/skipped"
        seconds=$(($(date +%s) - started))
        echo "  ok      $mode $name: $n tests, $seconds s"
        echo "$seconds $name ($mode)" >>"${KINF_TEST_TIMES:-/dev/null}"
        echo "$n" >>"$results/passed"
    else
        echo "  FAILED  $mode $name"
        cat "$output"
        echo "$name" >>"$results/failed"
        said=$(say_failure "$output")
        echo "$name ($mode): status $status, $said" >>"${KINF_TEST_FAILURES:-/dev/null}"
    fi
}

# say_failure OUTPUT: the test that it began last, and what that or a sanitizer said.
say_failure() {
    echo "last begun $(sed -n 's/^\[ RUN      \] //p' "$1" | tail -n 1)"
    grep -aE '^\[  (ERROR|FAILED) |^\[   LINE |^SUMMARY: |^==[0-9]+==ERROR' "$1" | cut -c -200 | head -n 6 | sed 's/^/    /' || true
}
export -f run_program say_failure

touch "$results/passed" "$results/failed" "$results/skipped"
printf '%s\n' "$@" | xargs -P "$at_once" -I{} bash -c 'run_program {}'
cat "$results/skipped"
failed=$(wc -l <"$results/failed")
echo "unit tests ($mode): $(awk '{ n += $1 } END { print n + 0 }' "$results/passed") passed, $failed programs failed"
[ "$failed" -eq 0 ]
