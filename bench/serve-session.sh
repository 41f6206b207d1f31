#!/usr/bin/env bash
# What it costs to read one's own writes: pairs of a PATCH and a GET by client-go on a real kube-apiserver, directly and
# through kinformerd with consistency cache (which may read the past), session and latest. Fails if another one than
# cache does. N_PAIRS (2000) of each, by one client and by 32 at once; DAEMON=FILE: another build.
set -euo pipefail
cd "$(dirname "$0")/.."

daemon=${DAEMON:-build/release/bin/kinformerd}
n_pairs=${N_PAIRS:-2000}
sessions=build/cluster/bin/sessions
daemon_pid=
tests/cluster/build.sh
make --no-print-directory -s MODE=release build/release/bin/kinformerd
folder=$(mktemp -d)
trap 'stop_daemon; tests/cluster/cluster.sh stop "$folder"; rm -rf "$folder"' EXIT

stop_daemon() {
    [ -z "$daemon_pid" ] || kill "$daemon_pid" 2>/dev/null || true
    [ -z "$daemon_pid" ] || wait "$daemon_pid" || true
    daemon_pid=
}

# start_daemon CONSISTENCY: at `url`, with all config maps in its cache
start_daemon() {
    rm -f "$folder/clients"
    printf 'listen: ["127.0.0.1:0"]\npassThrough: true\nevents: none\nresources:\n- resource: configmaps\n  consistency: %s\n' \
        "$1" >"$folder/config.yaml"
    "$daemon" --kubeconfig "$folder/admin.kubeconfig" --config "$folder/config.yaml" --write-kubeconfig "$folder/clients" \
        --log-level warn &
    daemon_pid=$!
    for ((tries = 0; tries < 600; tries++)); do
        url=$(sed -n 's|.*server: http:|http:|p' "$folder/clients" 2>/dev/null || true)
        [ -z "$url" ] || [ "$(curl -sS -o /dev/null -w '%{http_code}' "$url/readyz")" != 200 ] || return 0
        sleep 0.1
    done
    echo "kinformerd does not start" >&2
    return 1
}

# measure NAME URL
measure() {
    local line n_clients

    for n_clients in 1 32; do
        line=$("$sessions" -measure -server "$2" -token "$token" -namespace default -workers "$n_clients" -pairs "$n_pairs")
        printf '%-8s %2d clients: %s\n' "$1" "$n_clients" "$line"
        [[ $1 == cache || $line == *" stale 0 of "* ]] || return 1
    done
}

tests/cluster/cluster.sh start "$folder" >/dev/null
# shellcheck source=/dev/null
. "$folder/cluster.env"
token=$(sed -n 's/.*token: *//p' "$folder/admin-token.kubeconfig")
measure direct "$KINF_SERVER"
for consistency in cache session latest; do
    start_daemon "$consistency"
    measure "$consistency" "$url"
    stop_daemon
done
