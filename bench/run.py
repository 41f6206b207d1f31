#!/usr/bin/env python3
"""`make bench`: measures kinformer beside its peers and writes what came out. README.md says what is measured, and how.

    bench/run.py [RUNS=5] [SIZE=10050] [ONLY=sync,events] [SIZES=1000,10000,50000] [PEERS=client-go,kube-rs]
    bench/run.py --render      RESULTS.md, its pictures and the figures in README.md, out of results.json
    bench/run.py --check       whether these are what results.json makes of them

Results are kept in results.json, a measurement each; ONLY replaces those that it names. OUT=FOLDER puts everything there
instead, and leaves README.md alone.
"""

import datetime
import os
import sys
import time

import canned
import cluster
import controllers
import crowd
import lab
import readers
import report
import restart
import session
import sidecar
import simulator

# What `make bench` measures, in the order of its worth, and what has to be asked for: it takes minutes.
MEASUREMENTS = {"sync": canned.sync, "events": canned.events, "relist": canned.relist, "growth": canned.growth,
                "streamed": canned.streamed, "real": cluster.real, "sidecar": sidecar.sidecar}
ON_REQUEST = {"watches": sidecar.watches, "storm": sidecar.storm, "hostile": sidecar.hostile,
              "controllers": controllers.controllers, "readers": readers.readers, "crowd": crowd.crowd, "restart": restart.restart,
              "session": session.session, "simulator": simulator.simulator}
DEFAULT_SIZE = 10050


class Lab:
    """What a measurement is asked for."""

    def __init__(self, options):
        self.runs = int(options.get("RUNS", 5))
        self.size = int(options.get("SIZE", DEFAULT_SIZE))
        self.scale = min(1.0, self.size / DEFAULT_SIZE)
        self.sizes = [int(size) for size in options.get("SIZES", "").split(",") if size]
        self.peers = [peer for peer in options.get("PEERS", "client-go,kube-rs").split(",") if peer]
        self.clients = [*lab.build(self.peers), lab.CURL]
        self.versions = lab.versions(self.clients)

    def sizes_or(self, default):
        return self.sizes or default

    def only(self, names):
        return [name for name in names if name in self.clients]


def commit():
    """With a + behind it where the tree is not that."""
    try:
        changed = lab.run("git", "-C", lab.ROOT, "status", "--porcelain", "--", "src", "bench", "tests/replay")
        changed = [line for line in changed.splitlines() if not line.endswith((".svg", "bench/RESULTS.md", "bench/results.json"))]
        return lab.run("git", "-C", lab.ROOT, "rev-parse", "--short=9", "HEAD").strip() + ("+" if changed else "")
    except (OSError, lab.subprocess.CalledProcessError):
        return "unknown"


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), os.uname().machine)
    with open("/proc/meminfo", encoding="utf-8") as file:
        gib = round(int(file.readline().split()[1]) / 2**20)
    return f"{os.cpu_count()} cores of {model}, {gib} GiB, Linux {os.uname().release.split('-')[0]}"


def measure(name, function, asked):
    """The measurement, with what it was taken on; of a noisy machine `load` tells."""
    load, began, tree = os.getloadavg()[0], time.monotonic(), commit()
    print(f"{name} ...", flush=True)
    found = function(asked)
    found |= {"commit": tree, "date": datetime.date.today().isoformat(), "machine": machine(), "load": round(load, 1),
              "seconds": round(time.monotonic() - began)}
    print(report.text_of(name, found), flush=True)
    return found


def measure_all(options, folder):
    functions = MEASUREMENTS | ON_REQUEST
    names = options["ONLY"].split(",") if options.get("ONLY") else list(MEASUREMENTS)
    unknown = [name for name in names if name not in functions]
    if unknown:
        raise SystemExit(f"ONLY: there is no {', '.join(unknown)}; there are {', '.join(functions)}")
    results, committed, asked = report.read(folder), report.read(lab.BENCH), Lab(options)
    for name in names:
        try:
            results[name] = measure(name, functions[name], asked)
        except (lab.Failure, lab.subprocess.CalledProcessError) as error:
            print(f"bench: {name}: {error}", file=sys.stderr)
            continue
        report.write(folder, results)
    for warning in report.regressions(committed, results):
        print("bench: warning: " + warning)
    return results


def main():
    options = {name: value for name, _, value in (word.partition("=") for word in sys.argv[1:])}
    unknown = set(options) - {"RUNS", "SIZE", "ONLY", "SIZES", "PEERS", "OUT", "--render", "--check"}
    if unknown:
        raise SystemExit(f"bench/run.py: what is {', '.join(sorted(unknown))}?\n\n{__doc__}")
    folder = os.path.abspath(options.get("OUT") or lab.BENCH)
    os.makedirs(folder, exist_ok=True)
    try:
        if "--check" in options:
            sys.exit(report.check(folder))
        report.render(folder, report.read(folder) if "--render" in options else measure_all(options, folder))
    except lab.Failure as failure:
        raise SystemExit(f"bench: {failure}") from failure


if __name__ == "__main__":
    main()
