#!/usr/bin/env bash
# make test: installs what is missing, builds, runs unit tests in three builds and integration tests on
# kinformer-sim and on a real kube-apiserver, and prints a summary of what ran, what was skipped, what was not
# compared with the real server, and what took the longest. With CI=true nothing may be skipped.
set -uo pipefail
cd "$(dirname "$0")/.."

jobs=$(nproc)
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
export KINF_TEST_TIMES=$results/times
touch "$KINF_TEST_TIMES"
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
    "$@" 2>&1 | tee "$results/output"
    status=${PIPESTATUS[0]}
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

build() {
    make --no-print-directory -s -j"$jobs" MODE="$1" all "build-tests"
}

unit_tests() {
    make --no-print-directory -s -j"$jobs" MODE="$1" unit
}

scripts/install-deps.sh build test packages docs bench || exit 1

# The cluster's programs take minutes on a new machine and seconds afterwards: overlap them with the
# unit tests.
(
    nice tests/cluster/build.sh >"$results/cluster.log" 2>&1
    echo $? >"$results/cluster.status"
) &
cluster_build=$!

for mode in debug asan tsan; do
    stage "build ($mode)" build "$mode" || continue
    stage "unit tests ($mode)" unit_tests "$mode"
done
stage "fuzz corpus (asan)" make --no-print-directory -s -j"$jobs" MODE=asan fuzz-corpus
stage "build (release)" make --no-print-directory -s -j"$jobs" MODE=release all build-benches

# Some of the tests on kinformer-sim run kubectl and nats-server, too; here, since a stage runs in a shell of its own.
wait "$cluster_build"
stage "integration tests on kinformer-sim" env KINF_TEST_SERVER=sim python3 -B tests/integration/run.py

cluster_ready() {
    cat "$results/cluster.log"
    return "$(cat "$results/cluster.status")"
}
if stage "cluster programs" cluster_ready; then
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
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
