#!/usr/bin/env bash
# First sync of N pods from kinf-replay over TLS against curl's LIST of the same bytes, alternating in one run:
# ratios, not times, are the result. N_PODS (10800 of 14 kB are 145 MiB), ROUNDS (7); more in replay.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=bench/replay.sh
. bench/replay.sh

n_pods=${N_PODS:-10800}
rounds=${ROUNDS:-7}
start_replay "$n_pods"
token=$(sed -n 's/^ *token: //p' "$folder/kubeconfig")

curl_list() {
    timeout 60 curl -sS -o /dev/null -w 'seconds=%{time_total} bytes=%{size_download}\n' -A bench --http1.1 \
        --cacert "$folder/ca" -H "Authorization: Bearer $token" "$server/api/v1/pods"
}
measure() {
    timeout 60 "$1" --kubeconfig "$folder/kubeconfig" --resource pods --measure --log-level warn "${@:2}"
}

curl_list >/dev/null
for ((i = 0; i < rounds; i++)); do
    curl_list >>"$folder/curl"
    for daemon in $daemons; do
        name=${daemon//\//_}
        measure "$daemon" >>"$folder/$name.whole"
        measure "$daemon" --drop metadata.managedFields >>"$folder/$name.dropped"
        measure "$daemon" --keep spec.nodeName --keep status.phase --keep status.podIP \
            --keep 'spec.containers[*].name' >>"$folder/$name.agent"
    done
done

curl_seconds=$(field seconds <"$folder/curl" | median)
echo "pods=$n_pods bytes=$(field bytes <"$folder/curl" | median) rounds=$rounds curl_seconds=$curl_seconds"
for daemon in $daemons; do
    for what in whole dropped agent; do
        results=$folder/${daemon//\//_}.$what
        awk -v what="$what" -v s="$(field sync_seconds <"$results" | median)" -v c="$curl_seconds" \
            -v cpu="$(field cpu_seconds <"$results" | median)" -v stored="$(field stored_bytes <"$results" | median)" \
            -v peak="$(field peak_rss_kb <"$results" | median)" -v of="$daemon" \
            'BEGIN {printf "%-8s sync_seconds=%.3f (%.2f x curl) cpu_seconds=%.2f stored_mib=%.0f peak_mib=%.0f %s\n",
                    what, s, s / c, cpu, stored / 1048576, peak / 1024, of}'
    done
done
