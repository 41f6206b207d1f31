#!/usr/bin/env bash
# make run: kinformerd on the current cluster, printing what happens; without one that can be reached,
# on a simulated cluster: run-daemon.sh BIN-FOLDER [ARGUMENT]... (arguments of kinformerd; SIM=1 asks for
# the simulation). Ctrl-C ends everything, and no file is left.
set -euo pipefail

bin=$1
shift
if [ $# -eq 0 ]; then
    set -- --resource pods --events text
fi

# Why there is no cluster to run on; nothing if there is one. Who names a kubeconfig is not second-guessed.
why_not() {
    local argument answer

    for argument in "$@"; do
        case $argument in
        --kubeconfig* | --context* | --config*) return ;;
        esac
    done
    if answer=$(timeout 10 "$bin/kinformerd" --resource namespaces --measure --timeout 5s 2>&1 >/dev/null); then
        return
    fi
    # An answer that is a refusal comes from a server.
    case $answer in
    *' answered '*) ;;
    '') echo "the cluster of the current kubeconfig does not answer" ;;
    *) echo "${answer##*$'\n'}" ;;
    esac
}

if [ "${SIM:-}" != 1 ]; then
    reason=$(why_not "$@")
    if [ -z "$reason" ]; then
        echo "kinformerd $*"
        exec "$bin/kinformerd" "$@"
    fi
    echo "no cluster: ${reason#kinformerd: }"
fi

# The first port from 8001 on that nobody listens at.
free_port() {
    local port

    for port in {8001..8099}; do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || {
            echo "$port"
            return
        }
    done
    echo 0
}

folder=$(mktemp -d -t kinformer-XXXXXX)
sim=
daemon=

# Not by `wait`: bash, interrupted in one, may wait for ever in the next for what has ended meanwhile.
end() {
    [ -n "$1" ] || return 0
    kill "$1" 2>/dev/null || return 0
    while kill -0 "$1" 2>/dev/null; do
        sleep 0.05
    done
}

finish() {
    trap '' INT TERM HUP
    end "$daemon"
    end "$sim"
    rm -rf "$folder"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# In a process group of its own, so that Ctrl-C does not end it before who watches it.
set -m
"$bin/kinformer-sim" --listen 127.0.0.1:0 --load config/sample.yaml --churn 3/s --log-level warn \
    --write-kubeconfig "$folder/sim.kubeconfig" >"$folder/sim.out" &
sim=$!
set +m
for _ in $(seq 200); do
    grep -q serving "$folder/sim.out" && break
    kill -0 "$sim" 2>/dev/null || {
        wait "$sim" || true
        sim=
        echo "kinformer-sim did not start" >&2
        exit 1
    }
    sleep 0.05
done

port=$(free_port)
cat <<END

A simulated cluster (kinformer-sim: an API server in memory, with pods that come and go), kinformerd caching
it, and what changes as kinformerd sees it. Ctrl-C ends both.

  status page   http://127.0.0.1:$port/
  the cache     curl 'http://127.0.0.1:$port/api/v1/pods?limit=3'
  the cluster   kubectl --kubeconfig $folder/sim.kubeconfig get pods -A -w

kinformerd $* --listen 127.0.0.1:$port
END
"$bin/kinformerd" "$@" --kubeconfig "$folder/sim.kubeconfig" --listen "127.0.0.1:$port" --log-level warn &
daemon=$!
wait "$daemon"
