#!/usr/bin/env bash
# make test: installs what is missing, builds, runs unit tests in three builds and integration tests on
# kinformer-sim and on a real kube-apiserver, and prints a summary of what ran, what was skipped, what was not
# compared with the real server, what took the longest, and what failed by what. With CI=true nothing may be skipped.
set -uo pipefail
cd "$(dirname "$0")/.."

jobs=$(nproc)
results=$(mktemp -d)
declare -A begun
trap 'kill "${begun[@]}" 2>/dev/null; rm -rf "$results"' EXIT
export KINF_TEST_TIMES=$results/times KINF_TEST_FAILURES=$results/failures
touch "$KINF_TEST_TIMES" "$KINF_TEST_FAILURES"
passed=0
failed=0
skipped=0
summary=()

# stage NAME SECONDS VERDICT
note() {
    summary+=("$(printf '  %-34s %-8s %4s s' "$1" "$3" "$2")")
}

# Runs a command as one stage; its output is shown. 77 means skipped, with the reason as its last line.
stage() {
    local name=$1 started=$SECONDS status
    shift
    echo "== $name"
    "$@" 2>&1
    status=$?
    if [ "$status" -eq 77 ] && [ "${CI:-}" != true ]; then
        skipped=$((skipped + 1))
        note "$name" $((SECONDS - started)) skipped
    elif [ "$status" -ne 0 ]; then
        failed=$((failed + 1))
        note "$name" $((SECONDS - started)) FAILED
    else
        passed=$((passed + 1))
        note "$name" $((SECONDS - started)) ok
    fi
    return "$status"
}

# begin NAME COMMAND...: beside the stages before its own, which is `ended NAME`.
begin() {
    nice "${@:2}" >"$results/$1.log" 2>&1 &
    begun[$1]=$!
}

ended() {
    local status=0

    wait "${begun[$1]}" || status=$?
    unset "begun[$1]"
    cat "$results/$1.log"
    return "$status"
}

# begin_build MODE TARGET
begin_build() {
    begin "$1" make --no-print-directory -s -j"$jobs" MODE="$1" all "$2"
}

unit_tests() {
    make --no-print-directory -s -j"$jobs" MODE="$1" unit
}

scripts/install-deps.sh build test packages docs bench || exit 1

# They take minutes on a new machine and seconds afterwards.
begin cluster tests/cluster/build.sh

# Much of what unit tests take is waiting: the next build has the processors meanwhile.
begin_build debug build-tests
for modes in "debug asan build-tests" "asan tsan build-tests" "tsan release build-benches"; do
    read -r mode next target <<<"$modes"
    stage "build ($mode)" ended "$mode"
    is_built=$?
    begin_build "$next" "$target"
    [ "$is_built" -ne 0 ] || stage "unit tests ($mode)" unit_tests "$mode"
done
stage "build (release)" ended release
stage "fuzz corpus (asan)" make --no-print-directory -s -j"$jobs" MODE=asan fuzz-corpus

# Some of the tests on kinformer-sim run kubectl and nats-server, too.
stage "cluster programs" ended cluster
has_cluster=$?
stage "integration tests on kinformer-sim" env KINF_TEST_SERVER=sim python3 -B tests/integration/run.py

if [ "$has_cluster" -eq 0 ]; then
    stage "scanner against Go's encoding/json" scripts/compare-scanner.sh
    stage "integration tests" python3 -B tests/integration/run.py
else
    why="its programs could not be built"
    command -v go >/dev/null || why="no go in PATH"
    not_compared="not compared with a real API server: $why; $(cat build/integration/sim/out-of-place) tests ran on neither, all others on
  kinformer-sim alone (install Go 1.26, or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver and kubectl)"
fi

echo
echo "Summary"
printf '%s\n' "${summary[@]}"
[ -z "${not_compared:-}" ] || echo "  $not_compared"
echo "  the ten slowest"
sort -rn "$KINF_TEST_TIMES" | head -n 10 | while read -r seconds test; do printf '  %7s s  %s\n' "$seconds" "$test"; done
# Last, since of a long log the end is what is kept.
[ ! -s "$KINF_TEST_FAILURES" ] || { echo "  what failed" && sed 's/^/    /' "$KINF_TEST_FAILURES"; }
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
