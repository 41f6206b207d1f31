#!/usr/bin/env bash
# kinformer-sim: how soon it serves, what it holds, and how many changes a second it makes and serves.
#   bench/sim.sh [PODS] [RATE]
# Prints, for a server with PODS generated pods: seconds until it serves, memory, seconds of a LIST; and for
# RATE changes a second: how many a watcher received in ten seconds, and the server's CPU meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."

pods=${1:-20000}
rate=${2:-2000}
sim=build/release/bin/kinformer-sim
make --no-print-directory -s MODE=release "$sim"
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT

now() {
    date +%s.%N
}

# Seconds of CPU that the server has used.
cpu() {
    awk -v hz="$(getconf CLK_TCK)" '{print ($14 + $15) / hz}' "/proc/$pid/stat"
}

# start ARGUMENT...: sets pid, url and seconds.
start() {
    local began

    began=$(now)
    "$sim" --listen 127.0.0.1:0 --log-level warn "$@" >"$work/out" &
    pid=$!
    until url=$(sed -n 's/^serving //p' "$work/out") && [ -n "$url" ]; do
        kill -0 "$pid" || exit 1
        sleep 0.005
    done
    seconds=$(awk -v a="$began" -v b="$(now)" 'BEGIN {printf "%.3f", b - a}')
}

stop() {
    kill "$pid"
    wait "$pid" || true
    pid=
}

rss() {
    awk '/^VmRSS/ {print $2}' "/proc/$pid/status"
}

start
echo "empty: serves after ${seconds} s, rss_kb=$(rss)"
stop

start --no-workloads --generate "pods=$pods,nodes=$((pods / 50 + 1))"
echo "pods=$pods: serves after ${seconds} s, rss_kb=$(rss)"
curl -s -o "$work/list" -w 'LIST: seconds=%{time_total} bytes=%{size_download}\n' "$url/api/v1/pods"
stop

start --churn "$rate/s"
sleep 3
before=$(cpu)
timeout 10 curl -sN "$url/api/v1/pods?watch=1&resourceVersion=0" >"$work/events" || true
after=$(cpu)
echo "churn=$rate/s: events_per_second=$(($(wc -l <"$work/events") / 10)) cpu_per_second=$(awk -v a="$before" -v b="$after" 'BEGIN {printf "%.2f", (b - a) / 10}') rss_kb=$(rss)"
stop
