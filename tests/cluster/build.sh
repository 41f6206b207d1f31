#!/usr/bin/env bash
#
# Builds what the integration tests run against: etcd, kube-apiserver and kubectl at the versions
# go.mod names, kube-controller-manager and kube-scheduler, which one test runs through the daemon, the
# Go tools of this module, and nats-server and helm, of modules of their own. All go to build/cluster/bin of the repository.
#
# KUBEBUILDER_ASSETS names a folder that holds ready etcd, kube-apiserver and kubectl (as envtest
# has them): then only the tools, nats-server and helm are built, and the test of the two others is skipped. KINF_BUILD_JOBS is how many compilers run at once,
# default 2. A run that finds nothing changed returns at once.
#
# Exit codes: 0 built, 1 the build failed, 77 this machine lacks what a build needs.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(cd "$here/../.." && pwd)/build/cluster
servers=(
    etcd=go.etcd.io/etcd/server/v3
    kube-apiserver=k8s.io/kubernetes/cmd/kube-apiserver
    kubectl=k8s.io/kubernetes/cmd/kubectl
)
controllers=(
    kube-controller-manager=k8s.io/kubernetes/cmd/kube-controller-manager
    kube-scheduler=k8s.io/kubernetes/cmd/kube-scheduler
)
tools=(
    loader=./cmd/loader
    jsonvalid=./cmd/jsonvalid
    tlsserver=./cmd/tlsserver
    informers=./cmd/informers
    tlsproxy=./cmd/tlsproxy
    simclient=./cmd/simclient
    sessions=./cmd/sessions
    verbs=./cmd/verbs
    kubelet=./cmd/kubelet
)
nats=(
    nats-server=github.com/nats-io/nats-server/v2
    natsdump=./dump
)
helm=(
    helm=helm.sh/helm/v3/cmd/helm
)
export CGO_ENABLED=0

missing()
{
    echo "tests/cluster/build.sh: $1" >&2
    exit 77
}

# The version stamped into the servers, and into helm, which asks charts whether they suit it: that of the libraries that
# go.mod requires, whose versions begin with v0.
kubernetes_version()
{
    sed -n 's|^[[:space:]]*k8s.io/client-go v0\([0-9.]*\).*|v1\1|p' go.mod | head -n 1
}

ldflags()
{
    local version major minor

    version=$(kubernetes_version)
    IFS=. read -r major minor _ <<<"${version#v}"
    echo "-s -w -X k8s.io/component-base/version.gitVersion=$version" \
        "-X k8s.io/component-base/version.gitMajor=$major" \
        "-X k8s.io/component-base/version.gitMinor=$minor" \
        "-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=$minor" \
        "-X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor=$minor"
}

# fresh STAMP KEY NAME=PACKAGE...: the stamp holds the key, and every binary is there.
fresh()
{
    local stamp=$1 key=$2 target

    shift 2
    [[ -f $stamp && $(<"$stamp") == "$key" ]] || return 1
    for target; do
        [[ -x $out/bin/${target%%=*} ]] || return 1
    done
}

# build_group NAME KEY NAME=PACKAGE...
build_group()
{
    local stamp=$out/$1.stamp key=$2 target began=$SECONDS

    shift 2
    if fresh "$stamp" "$key" "$@"; then
        return 0
    fi
    rm -f "$stamp"
    for target; do
        echo "building ${target%%=*}"
        go build -trimpath -p "${KINF_BUILD_JOBS:-2}" -ldflags "$(ldflags)" \
            -o "$out/bin/${target%%=*}" "${target#*=}"
    done
    echo "$key" >"$stamp"
    echo "built in $((SECONDS - began)) s"
}

check_assets()
{
    local target

    for target in "${servers[@]}"; do
        if [[ ! -x $KUBEBUILDER_ASSETS/${target%%=*} ]]; then
            echo "tests/cluster/build.sh: KUBEBUILDER_ASSETS has no ${target%%=*}: $KUBEBUILDER_ASSETS" >&2
            exit 1
        fi
    done
}

cd "$here"
mkdir -p "$out/bin"
if ! command -v go >/dev/null; then
    missing "no go in PATH; $(sed -n 's/^go /Go /p' go.mod) or newer builds the test cluster's programs"
fi
go_version=$(go env GOVERSION 2>&1) || missing "$go_version"

modules=$(cat go.mod go.sum build.sh | sha256sum)
if [[ -n ${KUBEBUILDER_ASSETS:-} ]]; then
    check_assets
else
    [[ -f $out/servers.stamp ]] || echo "the first build of the servers takes about eight minutes on two cores"
    build_group servers "$go_version $modules" "${servers[@]}"
    build_group controllers "$go_version $modules" "${controllers[@]}"
fi
sources=$(find cmd -name '*.go' -print0 | sort -z | xargs -0 cat | sha256sum)
build_group tools "$go_version $modules $sources" "${tools[@]}"
for module in nats helm; do
    cd "$here/$module"
    declare -n targets=$module
    build_group "$module" "$go_version $(find . ../build.sh -type f -print0 | sort -z | xargs -0 cat | sha256sum)" "${targets[@]}"
done
