"""Reading a store, and writing to it beside readers: what clients do when they are told to by a line (store_work.h).

The store is an informer's of small pods; of a million client-go has the metadata alone, as its own benchmark of listers has.
"""

import contextlib
import tempfile

from canned import that_fit
from lab import Client, Rows, Server, why_void

POD = "small-pod.json"
SIZES = (1000, 10000, 100000, 1000000)
N_METADATA = 1000000
PODS_PER_HASH = 100  # of tests/replay
FEW, ALL = f"pod-template-hash={0:010x}", "app=storefront"
N_READERS = (0, 1, 8, 20, 40, 80)
N_WRITTEN, N_NAMESPACES = 10000, 10


def reading(client, n):
    """Figures of the lists and gets, and why they do not count, if so."""
    few, every, gets = client.ask("lists " + FEW), client.ask("lists " + ALL), client.ask("gets")
    found, expected = [said["found"] for said in (few, every, gets)], [PODS_PER_HASH, n, PODS_PER_HASH]
    return ({"few_us": few["ns"] / 1e3, "all_us": every["ns"] / 1e3, "get_us": gets["get_ns"] / 1e3,
             "by_index_us": gets["by_index_ns"] / 1e3}, None if found == expected else f"found {found}, not {expected}")


def writing(client, n, n_readers):
    said = client.ask(f"writes {n_readers}")
    expected = n // N_NAMESPACES if n_readers else 0
    return ({"p50_us": said["p50_ns"] / 1e3, "p99_us": said["p99_ns"] / 1e3, "per_s": said["per_s"],
             "lists_per_s": said["lists_per_s"]}, None if said["found"] == expected else f"lists of {said['found']}, not {expected}")


@contextlib.contextmanager
def synced(name, n):
    """A client that has all pods, and why it is void if it was told others."""
    with tempfile.TemporaryDirectory() as folder, Server(folder, n, pod=POD) as server, Client(name, folder, server.kubeconfig) as client:
        yield client, why_void(client.said("synced"), server.sums[client.sees_phase()], n)


def measure_reading(lab, sizes, runs):
    found = []
    for n in sizes:
        rows = Rows()
        flavours = ["kinformer", "client-go, metadata" if n >= N_METADATA else "client-go, JSON"]
        names = that_fit(lab.only(flavours), n, POD)
        for _ in range(runs):
            for name in names:
                with synced(name, n) as (client, void):
                    figures, why = reading(client, n)
                    rows.add(name, figures, void or why)
        found += [{**row, "objects": n} for row in rows.list()]
    return found


def measure_writing(lab, n, runs):
    rows = {n_readers: Rows() for n_readers in N_READERS}
    for _ in range(runs):
        for name in lab.only(["kinformer", "client-go, JSON"]):
            with synced(name, n) as (client, void):
                for n_readers in N_READERS:
                    figures, why = writing(client, n, n_readers)
                    rows[n_readers].add(name, figures, void or why)
    return [{**row, "readers": n_readers} for n_readers in N_READERS for row in rows[n_readers].list()]


def readers(lab):
    return {"runs": lab.runs, "note": f"small pods; writes to {N_WRITTEN:,} of them", "versions": lab.versions,
            "rows": measure_reading(lab, lab.sizes_or(SIZES), lab.runs) + measure_writing(lab, N_WRITTEN, lab.runs)}
