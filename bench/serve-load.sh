#!/usr/bin/env bash
# kinformerd under the load of its clients, behind kinf-replay: GET and LIST of 10,000 pods against the same bytes from
# kinf-replay itself, which has them ready; memory of a watch; 1,000 watches of all at 50 events of 2 kB a second, and
# 1,000 of a node each at 1,000 a second in all. Fails if an event is missed, repeated or out of order. SECONDS_EACH (20)
# of a load, N_WATCHES (1000); DAEMON=FILE: another build; more in replay.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=bench/replay.sh
. bench/replay.sh

bench=build/release/bench/bench_serve
daemon=${DAEMON:-build/release/bin/kinformerd}
n_watches=${N_WATCHES:-1000}
seconds_each=${SECONDS_EACH:-20}
daemon_pid=
make --no-print-directory -s MODE=release "$bench"
ulimit -n "$(ulimit -Hn)"
trap 'stop_daemon; stop_replay; rm -rf "$folder"' EXIT

stop_daemon() {
    [ -z "$daemon_pid" ] || kill "$daemon_pid" 2>/dev/null || true
    [ -z "$daemon_pid" ] || wait "$daemon_pid" || true
    daemon_pid=
}

# start_daemon: at `address`, with all pods in its cache
start_daemon() {
    rm -f "$folder/clients"
    printf 'listen: ["127.0.0.1:0"]\nevents: none\nresources:\n- resource: pods\n  indices:\n  - name: node\n    path: spec.nodeName\n' \
        >"$folder/config.yaml"
    "$daemon" --kubeconfig "$folder/kubeconfig" --config "$folder/config.yaml" --write-kubeconfig "$folder/clients" \
        --log-level warn &
    daemon_pid=$!
    for ((tries = 0; tries < 600; tries++)); do
        address=$(sed -n 's|.*server: http://||p' "$folder/clients" 2>/dev/null || true)
        [ -z "$address" ] || [ "$(curl -sS -o /dev/null -w '%{http_code}' "http://$address/readyz")" != 200 ] || return 0
        sleep 0.1
    done
    echo "kinformerd does not start" >&2
    return 1
}

say() {
    printf '%-22s' "$1"
    shift
    "$@"
}

start_replay 10000 --plain --watchlist
start_daemon
echo "pods of $(wc -c <"$pod") bytes, 10,000 of them"
name=$(curl -sS "http://$address/api/v1/pods?limit=1" | grep -oE '"name":"[^"]*-000000"' | head -n 1 | cut -d'"' -f4)
say "GET" "$bench" get "$address" "/api/v1/namespaces/load-0000/pods/$name" 2000
say "LIST" "$bench" get "$address" /api/v1/pods 15
say "LIST of kinf-replay" "$bench" get "${server#http://}" /api/v1/pods 15

pod=bench/small-pod.json
n_pods=30000
stop_daemon
start_replay "$n_pods" --plain --watchlist
start_daemon
echo "pods of $(wc -c <"$pod") bytes, $n_pods of them on $((n_pods / 30 + 1)) nodes"
say "idle, of a node each" "$bench" watch "$address" "$daemon_pid" "$n_watches" "$n_pods" $((n_pods / 30 + 1)) 0

# load NAME RATE N_NODES
load() {
    stop_daemon
    start_replay "$n_pods" --plain --watchlist --events "$2" --n-events $((seconds_each * $2))
    start_daemon
    say "$1" "$bench" watch "$address" "$daemon_pid" "$n_watches" "$n_pods" "$3" $((seconds_each * $2))
    curl -sS "http://$address/metrics" | sed -n 's/^kinformer_history_bytes.* /                      history_bytes=/p'
}

load "of all, 50/s" 50 0
load "of a node, 1000/s" 1000 $((n_pods / 30 + 1))
