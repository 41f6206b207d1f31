#!/usr/bin/env bash
# CPU of a watch event of 14 kB from a TLS socket to a handler, saturated and at 1,000 events a second, and events a
# second. N_EVENTS (100000), ROUNDS (5); PROGRAM="FILE FILE": other builds of bench_events, to compare; more in replay.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=bench/replay.sh
. bench/replay.sh

n_events=${N_EVENTS:-100000}
rounds=${ROUNDS:-5}
programs=${PROGRAM:-build/release/bench/bench_events}
make --no-print-directory -s MODE=release build/release/bench/bench_events

# run NAME N_EVENTS RATE
run() {
    start_replay 1000 --events "$3" --n-events "$2"
    for ((i = 0; i < rounds; i++)); do
        for program in $programs; do
            timeout 150 "$program" "$folder/kubeconfig" "$2" >>"$folder/${program//\//_}.$1"
        done
    done
    for program in $programs; do
        results=$folder/${program//\//_}.$1
        printf '%-10s cpu_us_per_event=%s events_per_second=%s rounds=%s %s\n' "$1" \
            "$(field cpu_us_per_event <"$results" | median)" "$(field events_per_second <"$results" | median)" \
            "$rounds" "$program"
    done
}

run saturated "$n_events" max
run paced $((n_events / 20)) 1000
