#!/usr/bin/env bash
#
# One etcd and one kube-apiserver on loopback, everything they own in one folder.

set -euo pipefail

usage()
{
    cat <<'EOF'
usage: cluster.sh COMMAND DIR

  start              start etcd and kube-apiserver and wait until they are ready; a folder that held
                     a cluster goes on with its data, on new ports
  stop               end both; the folder stays
  restart-apiserver  end the apiserver and start it again: same port, same data
  kill-apiserver     kill the apiserver as a crash would
  start-apiserver    start it again after kill-apiserver
  kill-etcd, start-etcd  the same of etcd; the apiserver goes on without it
  rotate             new certificates for the apiserver, which takes them by itself, and for user.kubeconfig's user,
                     in the same files
  rotate-authority   a new authority, and certificates of it for the same and for the admin; meanwhile both are trusted
  checkpoint         keep a copy of etcd's data (stops and starts both)
  rollback           go back to that copy, as a restore from a backup does: resourceVersions repeat
  status             say what runs; 0 when both do

In DIR afterwards: *.kubeconfig, cluster.env (to be sourced: KINF_SERVER, KINF_ETCD, KINF_KUBECTL),
pki/, tokens/, etcd.log, kube-apiserver.log, *.pid.

  KUBEBUILDER_ASSETS    folder with etcd, kube-apiserver and kubectl; default build/cluster/bin
  KINF_APISERVER_FLAGS  more flags for the apiserver, split at blanks; when it is not set,
                        restart-apiserver and start-apiserver use those of before
  KINF_OWNER_PID        the cluster is stopped when this process is gone; read by start
  KINF_READY_SECONDS    how long to wait for readiness, default 120
  KINF_TERM_SECONDS     how long to wait after TERM before KILL, default 3; open watches use it up

Exit codes: 0 done, 1 failed, 2 usage, 77 a program is missing.
EOF
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${KUBEBUILDER_ASSETS:-$(cd "$here/../.." && pwd)/build/cluster/bin}
ready_seconds=${KINF_READY_SECONDS:-120}
# Open watches hold an apiserver for up to a minute after TERM; nobody waits that long.
term_seconds=${KINF_TERM_SECONDS:-3}

fail()
{
    echo "cluster.sh: $1" >&2
    exit 1
}

# shellcheck source-path=SCRIPTDIR source=process.sh
source "$here/process.sh"
# shellcheck source-path=SCRIPTDIR source=credentials.sh
source "$here/credentials.sh"

need_programs()
{
    local program

    for program in etcd kube-apiserver kubectl; do
        if [[ ! -x $bin/$program ]]; then
            echo "cluster.sh: no $program in $bin; run tests/cluster/build.sh" >&2
            exit 77
        fi
    done
    for program in openssl flock setsid; do
        if ! command -v "$program" >/dev/null; then
            echo "cluster.sh: no $program in PATH" >&2
            exit 77
        fi
    done
}

# Commands on one folder take turns: the watchdog of an owner that died must not stop what a
# restart is about to start.
lock()
{
    exec 9>"$dir/lock"
    flock -w $((ready_seconds + 60)) 9 || fail "another command holds $dir/lock"
}

show_log()
{
    if [[ -s $dir/$1.log ]]; then
        echo "--- the end of $dir/$1.log" >&2
        tail -n 20 "$dir/$1.log" >&2
    else
        echo "--- nothing in $dir/$1.log" >&2
    fi
}

# A start that does not succeed says why and leaves nothing running.
guard_start()
{
    trap give_up EXIT
    trap 'trap - EXIT; echo "cluster.sh: interrupted, stopping" >&2; stop_all; exit 130' INT TERM HUP
}

start_succeeded()
{
    trap - EXIT INT TERM HUP
}

give_up()
{
    trap - EXIT
    echo "cluster.sh: $command failed" >&2
    [[ -f $dir/pki/service-account.pub ]] || show_log openssl
    show_log etcd
    show_log kube-apiserver
    stop_all
    exit 1
}

kubectl_admin()
{
    "$bin/kubectl" --kubeconfig "$dir/admin.kubeconfig" --request-timeout=5s "$@"
}

# port_lost NAME: the process ended because another one took its port.
port_lost()
{
    ! alive "$1" && grep -q 'address already in use' "$dir/$1.log"
}

start_etcd()
{
    local client=$1 peer=$2

    : >"$dir/etcd.log"
    spawn etcd "$bin/etcd" --name=test --data-dir="$dir/etcd" \
        --listen-client-urls="$client" --advertise-client-urls="$client" \
        --listen-peer-urls="$peer" --initial-advertise-peer-urls="$peer" \
        --initial-cluster="test=$peer" --unsafe-no-fsync \
        --quota-backend-bytes=8589934592 --log-level=warn
}

start_apiserver()
{
    local flags=()

    if [[ -n ${KINF_APISERVER_FLAGS+set} ]]; then
        echo "$KINF_APISERVER_FLAGS" >"$dir/apiserver.flags"
    fi
    [[ ! -f $dir/apiserver.flags ]] || read -ra flags <"$dir/apiserver.flags" || true

    : >"$dir/kube-apiserver.log"
    spawn kube-apiserver "$bin/kube-apiserver" \
        --etcd-servers="$etcd" \
        --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="${server##*:}" \
        --endpoint-reconciler-type=none --service-cluster-ip-range=10.0.0.0/24 \
        --tls-cert-file="$dir/pki/serving.crt" --tls-private-key-file="$dir/pki/serving.key" \
        --client-ca-file="$dir/pki/trusted.crt" --token-auth-file="$dir/tokens.csv" \
        --authorization-mode=RBAC --disable-admission-plugins=ServiceAccount \
        --service-account-issuer=https://kubernetes.default.svc \
        --service-account-key-file="$dir/pki/service-account.pub" \
        --service-account-signing-key-file="$dir/pki/service-account.key" \
        "${flags[@]}"
}

# Ready is more than /readyz: the apiserver makes the default namespace shortly after.
wait_ready()
{
    local name deadline=$((SECONDS + ready_seconds))

    while ((SECONDS < deadline)); do
        for name in etcd kube-apiserver; do
            if ! alive "$name"; then
                echo "cluster.sh: $name ended while it was waited for" >&2
                return 1
            fi
        done
        if kubectl_admin get --raw /readyz &>/dev/null &&
            kubectl_admin get --raw /api/v1/namespaces/default &>/dev/null; then
            return 0
        fi
        sleep 0.2
    done
    echo "cluster.sh: not ready within $ready_seconds s" >&2
    return 1
}

write_env()
{
    cat >"$dir/cluster.env" <<EOF
KINF_SERVER=$server
KINF_ETCD=$etcd
KINF_ETCD_PEER=$etcd_peer
KINF_KUBECTL=$bin/kubectl
EOF
}

read_env()
{
    [[ -f $dir/cluster.env ]] || fail "no cluster in $dir"
    server=$(sed -n 's/^KINF_SERVER=//p' "$dir/cluster.env")
    etcd=$(sed -n 's/^KINF_ETCD=//p' "$dir/cluster.env")
    etcd_peer=$(sed -n 's/^KINF_ETCD_PEER=//p' "$dir/cluster.env")
}

# Between choosing a port and listening on it somebody else may take it: then choose again.
start_on_free_ports()
{
    local try ports

    for try in 1 2 3 4 5; do
        mapfile -t ports < <(free_ports 3)
        ((${#ports[@]} == 3)) || fail "no ports"
        server=https://127.0.0.1:${ports[0]}
        etcd=http://127.0.0.1:${ports[1]}
        etcd_peer=http://127.0.0.1:${ports[2]}
        write_env
        make_kubeconfigs
        start_etcd "$etcd" "$etcd_peer"
        start_apiserver
        if wait_ready; then
            return 0
        fi
        port_lost etcd || port_lost kube-apiserver || exit 1
        echo "cluster.sh: a port was taken meanwhile, try $try of 5" >&2
        stop_servers
    done
    exit 1
}

# Until the owner is gone; then stop the cluster as the owner should have.
watch_owner()
{
    local owner=$1 born=$2

    while [[ $(start_time "$owner") == "$born" ]]; do
        sleep 1
    done
    echo "process $owner is gone, stopping"
    lock
    rm -f "$dir/watchdog.pid"
    stop_all
}

start_watchdog()
{
    local born=$1

    [[ -n $born ]] || return 0
    spawn watchdog "$here/cluster.sh" watch-owner "$dir/" "$KINF_OWNER_PID" "$born"
}

# The apiserver first: without etcd it would only fill its log.
stop_servers()
{
    end kube-apiserver "$term_seconds"
    end etcd "$term_seconds"
}

stop_all()
{
    end watchdog 1
    stop_servers
}

start()
{
    local began=$SECONDS owner_born=

    if alive kube-apiserver || alive etcd; then
        fail "a cluster runs in $dir"
    fi
    if [[ -n ${KINF_OWNER_PID:-} ]]; then
        owner_born=$(start_time "$KINF_OWNER_PID")
        [[ -n $owner_born ]] || fail "KINF_OWNER_PID: no process $KINF_OWNER_PID"
    fi
    end watchdog 1
    rm -f "$dir/apiserver.flags"
    guard_start
    start_watchdog "$owner_born"
    if [[ ! -f $dir/pki/service-account.pub ]]; then
        make_certificates &>"$dir/openssl.log"
        make_tokens
    fi
    start_on_free_ports
    start_succeeded
    echo "ready after $((SECONDS - began)) s: $server, kubeconfig $dir/admin.kubeconfig"
}

start_apiserver_again()
{
    local began=$SECONDS

    alive etcd || fail "no cluster runs in $dir"
    ! alive kube-apiserver || fail "the apiserver runs already"
    guard_start
    start_apiserver
    wait_ready || exit 1
    start_succeeded
    echo "ready after $((SECONDS - began)) s: $server"
}

start_etcd_again()
{
    alive kube-apiserver || fail "no cluster runs in $dir"
    ! alive etcd || fail "etcd runs already"
    guard_start
    start_etcd "$etcd" "$etcd_peer"
    wait_ready || exit 1
    start_succeeded
}

restart_both()
{
    start_etcd "$etcd" "$etcd_peer"
    start_apiserver_again
}

checkpoint()
{
    stop_servers
    rm -rf "$dir/etcd.checkpoint"
    cp -a "$dir/etcd" "$dir/etcd.checkpoint"
    restart_both
}

rollback()
{
    [[ -d $dir/etcd.checkpoint ]] || fail "no checkpoint in $dir"
    stop_servers
    rm -rf "$dir/etcd"
    cp -a "$dir/etcd.checkpoint" "$dir/etcd"
    restart_both
}

status()
{
    local name failed=0

    for name in etcd kube-apiserver; do
        if alive "$name"; then
            echo "$name runs, pid $(<"$dir/$name.pid")"
        else
            echo "$name does not run"
            failed=1
        fi
    done
    return "$failed"
}

case ${1:-} in
-h | --help)
    usage
    exit 0
    ;;
esac
if (($# < 2)); then
    usage >&2
    exit 2
fi
command=$1
[[ $command != start ]] || mkdir -p "$2"
dir=$(realpath -e "$2") || exit 1
if [[ $command == watch-owner ]]; then
    watch_owner "$3" "$4"
    exit 0
fi
need_programs
lock
[[ $command == start ]] || read_env
case $command in
start) start ;;
stop) stop_all ;;
restart-apiserver)
    end kube-apiserver "$term_seconds"
    start_apiserver_again
    ;;
kill-apiserver) end kube-apiserver 0 ;;
start-apiserver) start_apiserver_again ;;
kill-etcd) end etcd 0 ;;
start-etcd) start_etcd_again ;;
rotate) renew_certificates &>"$dir/openssl.log" ;;
rotate-authority) renew_authority &>"$dir/openssl.log" ;;
checkpoint) checkpoint ;;
rollback) rollback ;;
status) status ;;
*)
    usage >&2
    exit 2
    ;;
esac
