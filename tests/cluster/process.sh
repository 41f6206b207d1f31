# shellcheck shell=bash
#
# The processes of one cluster folder, sourced by cluster.sh. A process is known by a name; its pid
# is in $dir/<name>.pid. Nothing is signalled before its command line was seen to belong to $dir, so
# a stale file whose pid the system has given to another process does no harm.
# shellcheck disable=SC2154 # dir is cluster.sh's

# spawn NAME COMMAND...: starts a daemon that outlives this script, its output in $dir/<name>.log.
# It gets none of our descriptors: a caller that reads a pipe of ours would wait for its end.
spawn()
{
    local name=$1

    shift
    (
        for fd in /proc/self/fd/*; do
            fd=${fd##*/}
            ((fd > 2)) && exec {fd}>&-
        done
        exec setsid "$@" </dev/null >>"$dir/$name.log" 2>&1
    ) &
    echo $! >"$dir/$name.pid"
    disown
    executed "$name" $!
}

# executed NAME PID: waits until the new process has become the program, or is gone, so that
# alive() knows it from the first moment.
executed()
{
    local tries=3000

    while [[ -n $(start_time "$2") ]] && ! alive "$1"; do
        ((tries-- > 0)) || fail "$1 does not get to run within a minute"
        sleep 0.02
    done
}

# alive NAME: the process runs and is ours. Between two programs, while the next one is read from
# disk, a process has no command line: that is waited for.
alive()
{
    local pid args tries=500

    [[ -f $dir/$1.pid ]] || return 1
    pid=$(<"$dir/$1.pid")
    [[ $pid =~ ^[0-9]+$ && -r /proc/$pid/cmdline ]] || return 1
    while args=$(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") || return 1; do
        [[ -z $args && -n $(start_time "$pid") ]] && ((tries-- > 0)) || break
        sleep 0.02
    done
    [[ $args == *"$dir/"* ]]
}

# start_time PID: what tells a process from a later one of the same pid. Nothing when it is gone:
# when there is no such process, or a zombie whose last thread has ended. Before that a killed
# process may look dead and still hold its port.
start_time()
{
    local line fields threads

    line=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
    read -ra fields <<<"${line##*) }"
    threads=${fields[17]}
    [[ ${fields[0]} == Z && $threads -le 1 ]] || echo "${fields[19]}"
}

# gone_within PID START_TIME SECONDS
gone_within()
{
    local tries=$(($3 * 20))

    while [[ $(start_time "$1") == "$2" ]]; do
        ((tries-- > 0)) || return 1
        sleep 0.05
    done
}

# end NAME GRACE_SECONDS: TERM, wait, KILL, wait. Zero grace kills at once.
end()
{
    local name=$1 grace=$2 pid born

    if alive "$name"; then
        pid=$(<"$dir/$name.pid")
        born=$(start_time "$pid")
        ((grace == 0)) || kill -TERM "$pid" 2>/dev/null || true
        if ! gone_within "$pid" "$born" "$grace"; then
            ((grace == 0)) || echo "$name still runs $grace s after TERM, killing it" >&2
            kill -KILL "$pid" 2>/dev/null || true
            gone_within "$pid" "$born" 10 || fail "$name survives KILL, pid $pid"
        fi
    fi
    rm -f "$dir/$name.pid"
}

# free_ports N: ports where nothing listens, one a line. They lie below the range from which the
# kernel takes the source ports of clients: while the apiserver is down, no client can sit on its
# port, nor be connected to itself.
free_ports()
{
    local low port found=() tries=1000

    read -r low _ </proc/sys/net/ipv4/ip_local_port_range
    ((low >= 12000)) || low=32768
    while ((${#found[@]} < $1)); do
        ((tries-- > 0)) || fail "no free port between 10240 and $low"
        port=$((10240 + (RANDOM * 32768 + RANDOM) % (low - 10240)))
        [[ " ${found[*]} " != *" $port "* ]] || continue
        (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || found+=("$port")
    done
    printf '%s\n' "${found[@]}"
}
