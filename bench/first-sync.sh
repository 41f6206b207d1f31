#!/usr/bin/env bash
# First sync of N pods from a real kube-apiserver against curl's LIST of the same bytes, in one run: ratios, not
# times, are the result. N_PODS (10000), ROUNDS (5), POD=FILE for another pod.
set -euo pipefail
cd "$(dirname "$0")/.."

n_pods=${N_PODS:-10000}
rounds=${ROUNDS:-5}
make --no-print-directory -s MODE=release build/release/bin/kinformerd
tests/cluster/build.sh >/dev/null
folder=$(mktemp -d)
KINF_OWNER_PID=$$ tests/cluster/cluster.sh start "$folder"
trap 'tests/cluster/cluster.sh stop "$folder"; rm -rf "$folder"' EXIT
# shellcheck disable=SC1091
. "$folder/cluster.env"
build/cluster/bin/loader load -kubeconfig "$folder/admin.kubeconfig" -pods "$n_pods" -namespaces 10 -etcd "$KINF_ETCD"

curl_list() {
    # Not curl's own User-Agent: the server would indent its answer.
    curl -sS -o /dev/null -w '%{time_total} %{size_download}\n' -A bench --http1.1 --cacert "$folder/pki/ca.crt" \
        -H "Authorization: Bearer $(<"$folder/tokens/admin")" "$KINF_SERVER/api/v1/pods"
}
ours() {
    build/release/bin/kinformerd --kubeconfig "$folder/admin.kubeconfig" --resource pods --measure --log-level warn "$@"
}
field() {
    grep -oE "$1=[^ ]+" | cut -d= -f2
}
median() {
    sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'
}

curl_list >/dev/null
for ((i = 0; i < rounds; i++)); do
    curl_list | cut -d' ' -f1 >>"$folder/curl"
    ours >>"$folder/whole"
    ours --drop metadata.managedFields >>"$folder/dropped"
    ours --keep spec.nodeName --keep status.phase --keep status.podIP --keep 'spec.containers[*].name' >>"$folder/kept"
done

curl_seconds=$(median <"$folder/curl")
echo "pods=$n_pods bytes=$(curl_list | cut -d' ' -f2) curl_seconds=$curl_seconds"
for what in whole dropped kept; do
    seconds=$(field sync_seconds <"$folder/$what" | median)
    peak=$(field peak_rss_kb <"$folder/$what" | median)
    settled=$(field rss_kb <"$folder/$what" | median)
    awk -v what="$what" -v s="$seconds" -v c="$curl_seconds" -v p="$peak" -v r="$settled" \
        -v cpu="$(field cpu_seconds <"$folder/$what" | median)" -v stored="$(field stored_bytes <"$folder/$what" | median)" \
        'BEGIN {printf "%-8s sync_seconds=%.3f (%.2f x curl) cpu_seconds=%.2f stored_mib=%.0f peak_mib=%.0f settled_mib=%.0f (peak %.2f x settled)\n", what, s, s / c, cpu, stored / 1048576, p / 1024, r / 1024, p / r}'
done
