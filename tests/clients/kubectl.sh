#!/usr/bin/env bash
# What tests/clients/kubeconfig.py asks of every client, of kubectl: kubectl.sh KUBECONFIG NAMESPACE read|write NAME
# `read` prints the names of the config maps, the value of the one called "one", "watching", and the first event of the
# one called NAME; `write` makes that one and prints its name, or the status code that it was refused with.
set -euo pipefail

kubectl=("$KINF_KUBECTL" --kubeconfig "$1" --namespace "$2" --cache-dir "$(dirname "$1")/cache")
name=$4
if [ "$3" = read ]; then
    "${kubectl[@]}" get configmaps -o 'jsonpath={.items[*].metadata.name}{"\n"}'
    "${kubectl[@]}" get configmap one -o 'jsonpath={.data.value}{"\n"}'
    echo watching
    exec {events}< <(exec "${kubectl[@]}" get configmaps --field-selector "metadata.name=$name" --watch \
        --output-watch-events --no-headers)
    read -r -u "$events" kind found _
    echo "$kind $found"
    kill $!
elif refusal=$("${kubectl[@]}" create configmap "$name" -o 'jsonpath={.metadata.name}{"\n"}' 2>&1 </dev/null); then
    echo "$refusal"
else
    [[ $refusal == *"needs a bearer token of yours"* ]] || {
        echo "$refusal" >&2
        exit 1
    }
    echo 401
fi
