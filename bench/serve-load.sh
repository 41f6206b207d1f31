#!/usr/bin/env bash
# kinformerd beside the kube-apiserver that it caches, for the same clients (bench_serve, HTTP/1.1): 10,000 pods on 1,000
# nodes; GET, LIST, watches of a node each and of all, restarts, a hostile client beside a hundred good ones. Three
# columns: the API server; the daemon as it serves a network (TLS, auth: delegated); as a sidecar (plain loopback). The
# ratio is how many times the API server's figure is the daemon's. Fails if an event is lost, repeated or out of order.
# Events are written to etcd, so that nobody works for the writes. bench/RESULTS.md has what came out.
#   serve-load.sh [ROW]...   of: get list watches watches-of-all storm hostile; default: all
#   N_WATCHES (10000; 100, 500 or thousands), fewer where descriptors do not allow as many; N_OF_ALL (500), which watch
#   all; N_STORM (1000), at restarts; SECONDS_EACH (10); DAEMON=FILE: another build
set -euo pipefail
cd "$(dirname "$0")/.."

bench=build/release/bench/bench_serve
daemon=${DAEMON:-build/release/bin/kinformerd}
loader=build/cluster/bin/loader
n_pods=10000
n_of_all=${N_OF_ALL:-500}
n_storm=${N_STORM:-1000}
seconds_each=${SECONDS_EACH:-10}
n_outage=1000
next_event=0
daemon_pid=
port=$((10240 + RANDOM % 20000)) # where no client's own port is, so that it is free after a restart
ulimit -n "$(ulimit -Hn)"
# Of one address the daemon takes two thirds of its descriptors, less some of its own.
n_watches=$(($(ulimit -n) * 6 / 10))
((n_watches < ${N_WATCHES:-10000})) || n_watches=${N_WATCHES:-10000}
n_nodes=$((n_watches < 1000 ? n_watches : 1000)) # each is watched

tests/cluster/build.sh
make --no-print-directory -s MODE=release build/release/bin/kinformerd "$bench"
folder=$(mktemp -d)
cluster=$folder/cluster
trap 'stop_daemon; tests/cluster/cluster.sh stop "$cluster"; rm -rf "$folder"' EXIT

# --- the servers ---

on_cluster() {
    tests/cluster/cluster.sh "$1" "$cluster" >/dev/null
}

stop_daemon() {
    [ -z "$daemon_pid" ] || kill -KILL "$daemon_pid" 2>/dev/null || true
    [ -z "$daemon_pid" ] || wait "$daemon_pid" 2>/dev/null || true
    daemon_pid=
}

# await_200 URL
await_200() {
    for ((tries = 0; tries < 1200; tries++)); do
        [ "$(curl -sk -o /dev/null -w '%{http_code}' "$1")" != 200 ] || return 0
        sleep 0.05
    done
    echo "kinformerd does not start" >&2
    return 1
}

# start_daemon tls|plain: at `url`, with all pods in its cache
start_daemon() {
    {
        printf 'listen: ["127.0.0.1:%d"]\nevents: none\n' "$port"
        printf 'resources:\n- resource: pods\n  indices:\n  - name: node\n    path: spec.nodeName\n'
        [ "$1" = plain ] ||
            printf 'auth: delegated\ntls:\n  certFile: %s\n  keyFile: %s\n' "$cluster"/pki/serving.{crt,key}
    } >"$folder/config.yaml"
    "$daemon" --kubeconfig "$cluster/admin.kubeconfig" --config "$folder/config.yaml" --log-level error &
    daemon_pid=$!
    url=http://127.0.0.1:$port
    [ "$1" = plain ] || url=https://127.0.0.1:$port
    await_200 "$url/readyz"
}

# begin api|tls|plain: that server, freshly started, is `url` and `pid`, and knows `version`
begin() {
    stop_daemon
    if [ "$1" = api ]; then
        on_cluster kill-apiserver
        on_cluster start-apiserver
        url=$KINF_SERVER
        pid=$(<"$cluster/kube-apiserver.pid")
    else
        start_daemon "$1"
        pid=$daemon_pid
    fi
    version=$(curl -sk -A bench -H "Authorization: Bearer $TOKEN" "$url/api/v1/pods?limit=1" |
        grep -oE '"resourceVersion":"[0-9]+"' | head -n 1 | tr -dc 0-9)
}

# events N RATE: the next ones
events() {
    "$loader" events -etcd "$KINF_ETCD" "${fleet[@]}" -first "$next_event" -n "$1" -rate "$2" >/dev/null
    next_event=$((next_event + $1))
}

# --- what is measured ---

field() {
    grep -oE "(^| )$1=[^ ]+" "$2" | tail -n 1 | cut -d= -f2 || true
}

# compare ROW FIGURE=FIELD...: a line for each, out of what was measured of each server
compare() {
    local figure row=$1

    for figure in "${@:2}"; do
        printf '%-26s %-22s' "$row" "${figure%=*}"
        awk -v api="$(field "${figure#*=}" "$folder/api")" -v tls="$(field "${figure#*=}" "$folder/tls")" \
            -v plain="$(field "${figure#*=}" "$folder/plain")" '
            function ratio(x) { return api == "" || x + 0 <= 0 ? "" : sprintf("%.3gx", api / x) }
            BEGIN { printf "%11s %11s %7s %11s %7s\n", api, tls, ratio(tls), plain, ratio(plain) }'
        row=
    done
}

gets() {
    local server

    for server in api tls plain; do
        begin "$server"
        "$bench" get "$url" "$pod" 1 200 0 >/dev/null
        "$bench" get "$url" "${3:-$pod}" 1 "$2" 0 >"$folder/$server"
    done
    compare "$1" "ms, p50=p50_ms" "ms, p99=p99_ms" "answer, bytes=bytes"
}

# watching NAME N NODES N_EVENTS PID COMMAND...: runs the command while so many watch; its figures are $folder/NAME
watching() {
    local client failed=0

    : >"$folder/$1"
    "$bench" watch "$url" "$5" "$2" "$3" "$version" "$next_event" "$4" >"$folder/$1" &
    client=$!
    while kill -0 "$client" 2>/dev/null && ! grep -q ready "$folder/$1"; do
        sleep 0.1
    done
    "${@:6}"
    wait "$client" || failed=1
    ((failed == 0)) || { echo "$1: $(tail -n 1 "$folder/$1")" && return 1; } >&2
}

cpu_ticks() {
    sed 's/.*) //' "/proc/$(<"$cluster/kube-apiserver.pid")/stat" | awk '{print $12 + $13}'
}

# load N RATE: and what the API server worked meanwhile, whoever it serves, is `api_cores`
load() {
    local ticks began=$EPOCHREALTIME

    ticks=$(cpu_ticks)
    events "$@"
    api_cores=$(awk -v began="$began" -v ended="$EPOCHREALTIME" -v ticks="$ticks" -v now="$(cpu_ticks)" \
        -v hz="$(getconf CLK_TCK)" 'BEGIN {printf "%.3f", (now - ticks) / hz / (ended - began)}')
}

# watches ROW N NODES RATE
watches() {
    local server n_events=$((seconds_each * $4))

    for server in api tls plain; do
        begin "$server"
        watching "$server" "$2" "$3" "$n_events" "$pid" load "$n_events" "$4"
        echo " api_cores=$api_cores" >>"$folder/$server"
    done
    compare "$1" watches=watches "delivered/s=delivered_per_s" lost=lost repeated=repeated "out of order=reordered" \
        "connections cut=cut" "write to event, ms, p50=p50_ms" "p99=p99_ms" "cores=cores" "cores of API server=api_cores" \
        "kB a watch=kb_per_watch" "kB a watch, then=kb_per_watch_then" "s to open all=open_s"
}

# outage api|daemon KIND: events before it and while it lasts
outage() {
    events "$n_outage" 0
    sleep 1
    if [ "$1" = api ]; then on_cluster kill-apiserver; else stop_daemon; fi
    events "$n_outage" 0
    if [ "$1" = api ]; then on_cluster start-apiserver; else start_daemon "$2"; fi
}

# storm ROW WHOSE: all connect at once after a restart of the one that is asked, or of the API server behind it
storm() {
    local server whose

    for server in api tls plain; do
        begin "$server"
        whose=$2
        [ "$server" != api ] || whose=api
        watching "$server" "$n_storm" "$n_nodes" $((2 * n_outage)) 0 outage "$whose" "$server"
    done
    compare "$1" watches=watches delivered=delivered lost=lost repeated=repeated "out of order=reordered" \
        "connections cut=cut" "sent the state=restated" "refused once back=refused" "the last one with=refusal" "s away=away_s" \
        "s until all caught up=caught_up_s"
}

hostile() {
    local server attacker

    for server in api tls plain; do
        begin "$server"
        TOKEN=$(<"$cluster/tokens/reader") "$bench" get "$url" "$pod" 100 20 500 >"$folder/$server.alone"
        TOKEN=$(<"$cluster/tokens/kinformer") "$bench" attack "$url" 13 >"$folder/$server.attack" &
        attacker=$!
        sleep 2
        TOKEN=$(<"$cluster/tokens/reader") "$bench" get "$url" "$pod" 100 20 500 >"$folder/$server"
        wait "$attacker"
        sed -E 's/(failed|p50_ms|p99_ms)/alone_\1/g' "$folder/$server.alone" >>"$folder/$server"
        cat "$folder/$server.attack" >>"$folder/$server"
    done
    compare "100 GET, 200/s" "alone: ms, p50=alone_p50_ms" "alone: ms, p99=alone_p99_ms" \
        "attacked: ms, p50=p50_ms" "attacked: ms, p99=p99_ms" "attacked: failed=failed" "attacker's answers=selectors"
}

# --- the course ---

tests/cluster/cluster.sh start "$cluster" >/dev/null
# shellcheck source=/dev/null
. "$cluster/cluster.env"
export TOKEN
TOKEN=$(<"$cluster/tokens/admin")
"$KINF_KUBECTL" --kubeconfig "$cluster/admin.kubeconfig" apply -f tests/cluster/manifests/reader.yaml \
    -f tests/cluster/manifests/kinformer.yaml >/dev/null
fleet=(-pods "$n_pods" -namespaces 10 -nodes "$n_nodes" -pod bench/small-pod.json)
"$loader" load --kubeconfig "$cluster/admin.kubeconfig" "${fleet[@]}" -etcd "$KINF_ETCD" >/dev/null
begin api
pod=/api/v1/namespaces/load-0/pods/$(curl -sk -A bench -H "Authorization: Bearer $TOKEN" \
    "$url/api/v1/namespaces/load-0/pods?limit=1" | grep -oE '"name":"load-[^"]*"' | head -n 1 | cut -d'"' -f4)

((n_watches == ${N_WATCHES:-10000})) || echo "(no more than $n_watches watches: descriptors)"
printf '%-26s %-22s%11s %11s %7s %11s %7s\n' "" "" "API server" "daemon TLS" ratio sidecar ratio
(($# > 0)) || set -- get list watches watches-of-all storm hostile
for row; do
    case $row in
    get)
        gets "GET of a pod" 3000
        gets "GET, resourceVersion=0" 3000 "$pod?resourceVersion=0"
        ;;
    list) gets "LIST of $n_pods pods" 10 /api/v1/pods ;;
    watches)
        watches "of a node, 50/s" "$n_watches" "$n_nodes" 50
        watches "of a node, 1000/s" "$n_watches" "$n_nodes" 1000
        ;;
    watches-of-all) watches "of all, 50/s" "$n_of_all" 0 50 ;;
    storm)
        echo "(of $n_storm watches: 10,000 that come back at once keep an API server on two busy cores from getting ready)"
        storm "restart" daemon
        storm "restart of the API server" api
        ;;
    hostile) hostile ;;
    *) echo "no such row: $row" >&2 && exit 2 ;;
    esac
done
