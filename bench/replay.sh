# shellcheck shell=bash
# For the benchmarks that need a server: kinf-replay with generated pods over TLS. Sourced; sets `folder` (temporary)
# and `server`, and ends what it started when the script ends.
# POD=FILE: another pod (JSON). DAEMON="FILE FILE": other builds of kinformerd, to compare.

pod=${POD:-bench/pod.json}
daemons=${DAEMON:-build/release/bin/kinformerd}
replay_pid=
folder=$(mktemp -d)
trap 'stop_replay; rm -rf "$folder"' EXIT
make --no-print-directory -s MODE=release build/release/bin/kinformerd build/release/replay/kinf-replay

stop_replay() {
    [ -z "$replay_pid" ] || kill "$replay_pid" 2>/dev/null || true
    [ -z "$replay_pid" ] || wait "$replay_pid" || true
    replay_pid=
}

# start_replay N_PODS [OPTION]...
start_replay() {
    stop_replay
    : >"$folder/replay"
    build/release/replay/kinf-replay --generate-pods "$1" --pod "$pod" --write-kubeconfig "$folder/kubeconfig" \
        --write-ca "$folder/ca" "${@:2}" >"$folder/replay" &
    replay_pid=$!
    for ((tries = 0; tries < 100; tries++)); do
        server=$(sed -n 's/^server=\([^ ]*\).*/\1/p' "$folder/replay")
        [ -z "$server" ] || return 0
        sleep 0.1
    done
    echo "kinf-replay does not start" >&2
    return 1
}

# field NAME <OUTPUT: the values of NAME=VALUE, one a line
field() {
    grep -oE "(^| )$1=[^ ]+" | cut -d= -f2
}

median() {
    sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'
}
