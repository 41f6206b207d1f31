"""Clients on the canned server, over TLS: first sync, events, relist, growth. Each run has a server of its own."""

import math
import os
import tempfile
import time

from lab import (BENCH, CURL, Client, Process, Rows, Server, available_mib, cpu_seconds_of_one_thread, curl_once, status_mib,
                 wait_quiet, why_void)

TYPICAL = ["kinformer", "kinformer, compressed", "kinformer, agent fields", "client-go, JSON", "client-go, dynamic", "kube-rs",
           "kube-rs, dynamic", CURL]
SETTLE_S = 0.5

# --- first sync ---


def sync_of(client, server):
    """Figures, and why they do not count, if so."""
    said = client.said("synced")
    time.sleep(SETTLE_S)
    figures = {"wall_s": (said["at_ns"] - client.began_ns) / 1e9, "cpu_s": said["cpu_us"] / 1e6,
               "peak_mib": status_mib(client.pid, "VmHWM"), "settled_mib": status_mib(client.pid, "VmRSS")}
    return figures, why_void(said, server.sums[client.sees_phase()], server.n_pods)


def sync_once(name, server):
    if name != CURL:
        with Client(name, server.folder, server.kubeconfig) as client:
            return sync_of(client, server)
    wall_s, cpu_s, size = curl_once(server.curl("/api/v1/pods"))
    return {"wall_s": wall_s, "cpu_s": cpu_s, "bytes": size}, None


def measure_sync(rows, names, size, runs, *options, pod="pod.json"):
    for _ in range(runs):
        for name in names:
            with tempfile.TemporaryDirectory() as folder, Server(folder, size, *options, pod=pod) as server:
                rows.add(name, *sync_once(name, server))


def sync(lab):
    rows = Rows()
    names = lab.only(["kinformer", "kinformer, compressed", "kinformer, agent fields", "client-go, JSON", "client-go, dynamic",
                      "client-go, metadata", "kube-rs", "kube-rs, dynamic", CURL])
    measure_sync(rows, names, lab.size, lab.runs)
    size = rows.rows[CURL]["figures"].pop("bytes")[0]
    return {"objects": lab.size, "runs": lab.runs, "rows": rows.list(), "versions": lab.versions,
            "note": f"{size / lab.size:,.0f} bytes each, TLS 1.3 on loopback"}


def streamed(lab):
    """The same from a server that has watch lists."""
    rows = Rows()
    names = lab.only(["kinformer, watch list", "client-go, JSON", "kube-rs, watch list"])
    measure_sync(rows, names, lab.size, lab.runs, "--watchlist")
    return {"objects": lab.size, "runs": lab.runs, "rows": rows.list(), "versions": lab.versions}


# --- events ---

# So many that it takes some seconds as fast as it goes.
N_SATURATED = {"kinformer": 60000, "kinformer, compressed": 60000, "kinformer, agent fields": 60000, "client-go, JSON": 2500,
               "client-go, dynamic": 1500, "kube-rs": 9000, "kube-rs, dynamic": 6000, CURL: 100000}
SECONDS_OF_RATE = {100: 3, 1000: 3, 5000: 2}
N_EVENT_PODS = 1000


def latencies_ms(path, watch, rate, n_skipped):
    """From when each event was to be sent, whether or not it was, to the callback."""
    began_s, rv = watch
    with open(path, encoding="ascii") as file:
        arrivals = [line.split() for line in file][n_skipped:]
    return [int(at) / 1e6 - (began_s + (int(seen) - rv) / rate) * 1e3 for seen, at in arrivals]


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, math.ceil(q * len(values)) - 1)]


def events_of_client(name, server, n_events, rate):
    with Client(name, server.folder, server.kubeconfig, n_events) as client:
        client.wait_line("^written$")
        warm, done = client.said("warm"), client.said("done")
        n_counted = n_events - n_events // 10
        figures = {"cpu_us": (done["cpu_us"] - warm["cpu_us"]) / n_counted,
                   "per_s": n_counted / (done["at_ns"] - warm["at_ns"]) * 1e9}
        if rate:
            late = latencies_ms(client.times, server.wait_watches(1), rate, n_events // 10)
            figures |= {f"p{q * 100:g}_ms": quantile(late, q) for q in (0.5, 0.99, 0.999)}
        return figures, why_void(done, server.sums[True], server.n_pods + n_events)


def events_of_curl(server, n_events):
    target = f"/api/v1/pods?watch=1&resourceVersion={1000000000 + server.n_pods}"
    with Process(server.folder, "curl", server.curl(target)) as curl:
        server.wait_watches(1)
        began, cpu = time.monotonic(), cpu_seconds_of_one_thread(curl.pid)
        ended, used = wait_quiet(curl.pid, cpu_seconds_of_one_thread)
        return {"cpu_us": (used - cpu) / n_events * 1e6, "per_s": n_events / (ended - began)}, None


def events_once(name, rate, n_events, n_pods):
    with tempfile.TemporaryDirectory() as folder, Server(folder, n_pods, "--events", str(rate or "max"),
                                                         "--n-events", str(n_events)) as server:
        return events_of_curl(server, n_events) if name == CURL else events_of_client(name, server, n_events, rate)


def is_too_fast(rate, saturated):
    """Whether its backlog would only grow."""
    per_s = saturated["figures"]["per_s"]
    return rate > 0.8 * sorted(per_s)[len(per_s) // 2]


def events(lab):
    names, n_pods, found = lab.only(TYPICAL), min(N_EVENT_PODS, lab.size), []
    rows = Rows()
    for _ in range(lab.runs):
        for name in names:
            rows.add(name, *events_once(name, 0, max(100, round(N_SATURATED[name] * lab.scale)), n_pods))
    found += [{**row, "rate": 0} for row in rows.list()]
    for rate, seconds in SECONDS_OF_RATE.items():
        paced = Rows()
        for _ in range(lab.runs):
            for name in names:
                if not is_too_fast(rate, rows.rows[name]):
                    paced.add(name, *events_once(name, rate, max(50, round(rate * seconds * lab.scale)), n_pods))
        found += [{**row, "rate": rate} for row in paced.list()]
    return {"objects": n_pods, "runs": lab.runs, "rows": found, "versions": lab.versions}


# --- relist ---


def relist_of(client, server):
    """From the 410 until nothing moves any more; the peak is that of the relist alone."""
    server.wait_watches(1)
    wait_quiet(client.pid)
    if len(server.watches()) > 1:
        return {}, "the 410 came before it was at rest"
    before, settled = client.mark(), status_mib(client.pid, "VmRSS")
    with open(f"/proc/{client.pid}/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
    server.wait_watches(2)
    wait_quiet(client.pid)
    peak, after = status_mib(client.pid, "VmHWM"), client.mark()
    figures = {"cpu_s": (after["cpu_us"] - before["cpu_us"]) / 1e6, "settled_mib": settled, "peak_mib": peak,
               "again": after["told"] - before["told"]}
    return figures, None if after["objects"] == server.n_pods else f"{after['objects']} of {server.n_pods} objects"


def relist_once(name, n_pods):
    with tempfile.TemporaryDirectory() as folder, Server(folder, n_pods, "--expire", "2000") as server:
        with Client(name, folder, server.kubeconfig) as client:
            client.said("synced")
            return relist_of(client, server)


def relist(lab):
    rows = Rows()
    names = lab.only(["kinformer", "kinformer, agent fields", "client-go, JSON", "kube-rs"])
    for _ in range(lab.runs):
        for name in names:
            rows.add(name, *relist_once(name, lab.size))
    return {"objects": lab.size, "runs": lab.runs, "rows": rows.list(), "versions": lab.versions}


# --- growth ---

# How many times the bytes of its objects a client takes at its peak, about.
BYTES_TAKEN = {"kinformer": 1.2, "kinformer, agent fields": 0.4, "kinformer, compressed": 0.3, "kinformer, metadata": 0.6,
               "client-go, JSON": 9, "client-go, metadata": 4, "kube-rs": 12, CURL: 0}
# Some are asked only for the first sync.
GROWING = ["kinformer", "kinformer, agent fields", "kinformer, compressed", "client-go, JSON", "kube-rs", CURL]
SYNC_ONLY = ("kube-rs", CURL)
LARGE = 200000


def bytes_of(pod):
    return os.path.getsize(os.path.join(BENCH, pod))


def that_fit(names, size, pod):
    """Those that leave half of the memory to others."""
    return [name for name in names if BYTES_TAKEN[name] * size * bytes_of(pod) / 2**20 < available_mib() / 2]


def life_of(name, server):
    """First sync, a relist without news, reading, stop."""
    with Client(name, server.folder, server.kubeconfig) as client:
        figures, void = sync_of(client, server)
        again, lost = relist_of(client, server)
        gets = client.ask("gets")
        figures |= {"relist_" + figure: value for figure, value in again.items()}
        figures |= {"get_us": gets["get_ns"] / 1e3, "by_index_us": gets["by_index_ns"] / 1e3, "stop_ms": client.ask("stop")["ns"] / 1e6}
        return figures, void or lost


def grow(rows, name, size, pod):
    """The 410 comes when the first sync is over, for sure."""
    with tempfile.TemporaryDirectory() as folder, Server(folder, size, "--expire", str(3000 + size // 40), pod=pod) as server:
        rows.add(name, *(sync_once(name, server) if name in SYNC_ONLY else life_of(name, server)))


def growth_of(lab, size, pod):
    rows, names = Rows(), that_fit(lab.only(GROWING), size, pod)
    for _ in range(lab.runs):
        for name in names:
            grow(rows, name, size, pod)
    return [{**row, "objects": size, "object_bytes": bytes_of(pod)} for row in rows.list()]


def growth(lab):
    """Of more and more; large numbers also of small ones."""
    found = []
    for size in lab.sizes_or((1000, 10000, 50000)):
        found += growth_of(lab, size, "pod.json")
        if size >= LARGE:
            found += growth_of(lab, size, "small-pod.json")
    return {"runs": lab.runs, "rows": found, "versions": lab.versions}
