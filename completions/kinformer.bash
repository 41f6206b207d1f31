# Completion of kinformerd and kinformer-sim for bash.

_kinformer_resources="pods configmaps secrets services endpoints endpointslices.discovery.k8s.io nodes namespaces
    events serviceaccounts persistentvolumeclaims persistentvolumes deployments.apps replicasets.apps
    statefulsets.apps daemonsets.apps jobs.batch cronjobs.batch ingresses.networking.k8s.io
    networkpolicies.networking.k8s.io leases.coordination.k8s.io customresourcedefinitions.apiextensions.k8s.io"

_kinformer_offer()
{
    mapfile -t COMPREPLY < <(compgen "$@" -- "$current")
}

_kinformer_files()
{
    compopt -o filenames 2>/dev/null
    _kinformer_offer -f
}

# What may stand behind an option; fails: anything.
_kinformer_value()
{
    case $option in
    --config | --kubeconfig | --write-kubeconfig | --client-token | --plugin | --check-plugin | --policy | --load) _kinformer_files ;;
    --exec) _kinformer_offer -c ;;
    --resource) _kinformer_offer -W "$_kinformer_resources" ;;
    --listen | --health-listen | --fault-listen) _kinformer_offer -W "127.0.0.1 unix" ;;
    --events) _kinformer_offer -W "text json none" ;;
    --log-level) _kinformer_offer -W "off error warn info debug all=info" ;;
    --drop) _kinformer_offer -W "metadata.managedFields" ;;
    --store) _kinformer_offer -W "plain compressed" ;;
    --timeout) _kinformer_offer -W "30s 2m" ;;
    --namespace | --selector | --field-selector | --keep | --context) ;;
    --generate) _kinformer_offer -W "pods=1000 pods=1000,nodes=20" ;;
    --churn) _kinformer_offer -W "50/s" ;;
    --history) _kinformer_offer -W "64MiB 5m 64MiB,5m" ;;
    --fault | --seed) ;;
    *) return 1 ;;
    esac
}

_kinformer()
{
    local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}
    local options="--listen --write-kubeconfig --log-level --version --help"

    COMPREPLY=()
    # Readline takes "=" and ":" for words of their own.
    [[ $current == [=:] ]] && current='' || { [[ $option == [=:] ]] && option=${COMP_WORDS[COMP_CWORD - 2]}; }
    if [[ $option == unix ]]; then
        _kinformer_files
        return
    fi
    _kinformer_value && return
    case ${COMP_WORDS[0]##*/} in
    kinformerd)
        options+=" --config --resource --namespace --selector --field-selector --drop --keep --store --kubeconfig
            --context --health-listen --pass-through --on-demand --client-token --exec --plugin --events --events-objects
            --measure --timeout --check-config --online --check-plugin"
        ;;
    kinformer-sim)
        options+=" --tls --policy --load --generate --churn --seed --no-workloads --history --fault --fault-listen"
        ;;
    esac
    _kinformer_offer -W "$options"
}

complete -F _kinformer kinformerd kinformer-sim
