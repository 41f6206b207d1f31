"""kinformer-sim: how soon it serves, what it holds, and how many changes a second it makes and serves."""

import os
import subprocess
import tempfile
import time

from lab import RELEASE, Process, Rows, cpu_seconds, curl_once, make, status_mib

SIM = os.path.join(RELEASE, "bin", "kinformer-sim")
N_PODS, CHANGES_A_SECOND, COUNTED_S = 20000, 2000, 10


class Sim(Process):
    def __init__(self, folder, *options):
        super().__init__(folder, "sim", [SIM, "--listen", "127.0.0.1:0", "--log-level", "warn", *options])
        self.url = self.wait_line(r"^serving (\S+)")[1]
        self.figures = {"serves after, s": (time.monotonic_ns() - self.began_ns) / 1e9}

    def held(self):
        return self.figures | {"memory, MiB": status_mib(self.pid, "VmRSS")}


def churn(folder):
    with Sim(folder, "--churn", f"{CHANGES_A_SECOND}/s") as sim:
        time.sleep(3)
        began = cpu_seconds(sim.pid)
        path = os.path.join(folder, "events")
        with open(path, "wb") as file, subprocess.Popen(["curl", "-sN", sim.url + "/api/v1/pods?watch=1&resourceVersion=0"],
                                                        stdout=file) as curl:
            time.sleep(COUNTED_S)
            used = cpu_seconds(sim.pid) - began
            curl.kill()
        with open(path, "rb") as file:
            n = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
        return sim.held() | {"events/s": n / COUNTED_S, "cores": used / COUNTED_S}


def simulator(lab):
    make(SIM)
    rows = Rows()
    for _ in range(lab.runs):
        with tempfile.TemporaryDirectory() as folder:
            with Sim(folder) as sim:
                rows.add("empty", sim.held())
            with Sim(folder, "--no-workloads", "--generate", f"pods={N_PODS},nodes={N_PODS // 50 + 1}") as sim:
                list_s = curl_once(["curl", "-s", "-o", "/dev/null", "-w", "%{size_download}", sim.url + "/api/v1/pods"])[0]
                rows.add(f"{N_PODS:,} pods", sim.held() | {"LIST, s": list_s})
            rows.add(f"{CHANGES_A_SECOND:,} changes a second", churn(folder))
    return {"runs": lab.runs, "rows": rows.list()}
