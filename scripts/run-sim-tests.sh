#!/usr/bin/env bash
# Integration tests on kinformer-sim, which need no Go: each module with a server of its own, some at once,
# since most of their time is waiting. Arguments: modules, default all that can do without a cluster. A log of each
# stays in build/sim-tests; what needs the real server is skipped, and counted there in `skipped`.
set -uo pipefail
cd "$(dirname "$0")/.."

logs=$PWD/build/sim-tests
rm -rf "$logs"
mkdir -p "$logs"
cd tests/integration
if [ $# -eq 0 ]; then
    # Those two compare kinformer-sim with the real server, or are asked by clients in Go.
    mapfile -t modules < <(printf '%s\n' test_*.py | sed 's/\.py$//' | grep -v -e '^test_sim_rows$' -e '^test_sim_clients$')
    set -- "${modules[@]}"
fi
export KINF_TEST_SERVER=sim logs

run_module() {
    local started=$SECONDS

    if python3 -B -m unittest -v "$1" >"$logs/$1.log" 2>&1; then
        printf '%-24s %s, %s s\n' "$1" "$(tail -n 1 "$logs/$1.log")" $((SECONDS - started))
    else
        cat "$logs/$1.log"
        echo "$1 FAILED after $((SECONDS - started)) s"
        return 1
    fi
}
export -f run_module
printf '%s\n' "$@" | xargs -P $(($(nproc) + 1)) -I{} bash -c 'run_module {}'
status=$?
cat "$logs"/*.log | grep -c "skipped .needs the real server" >"$logs/skipped"
exit "$status"
