"""Clients that cost much, by right or in malice, and what everybody else notices of them."""

import contextlib
import http.client
import multiprocessing
import re
import socket
import statistics
import tempfile
import threading
import time
import unittest

from harness import PATIENCE, Daemon, needs_sim, run_daemon, wait_until
from sim import Sim
from test_serve import Served, ask, body_of
from test_serve_hostile import HEAD, connect, cpu_seconds

def crowd_out(address, requests, seconds, per_process=10):
    """Processes whose threads send these requests again and again; a list to be joined."""
    def ask_again_and_again(request, end):
        while time.monotonic() < end:
            with contextlib.suppress(OSError, http.client.HTTPException), \
                    contextlib.closing(http.client.HTTPConnection(address, timeout=PATIENCE)) as connection:
                connection.request("GET", request[0], headers=request[1])
                connection.getresponse().read()

    def run(part):
        end = time.monotonic() + seconds
        for request in part:
            threading.Thread(target=ask_again_and_again, args=(request, end), daemon=True).start()
        time.sleep(seconds)
    processes = [multiprocessing.get_context("fork").Process(target=run, args=(requests[i:i + per_process],))
                 for i in range(0, len(requests), per_process)]
    for process in processes:
        process.start()
    return processes


@needs_sim("servers of its own")
class Fair(unittest.TestCase):
    """A hundred clients that cost much, and what the others notice of them. Of 8,000 pods of 12 kB, in a release build."""

    @classmethod
    def setUpClass(cls):
        cls.sim = cls.enterClassContext(Sim("--generate", "pods=8000", "--no-workloads", "--log-level", "warn",
                                            mode="release"))
        cls.served = cls.enterClassContext(Served(resource=("pods",), mode="release", kubeconfig=cls.sim.kubeconfig))
        pod = body_of(cls.served, "/api/v1/pods?limit=1")["items"][0]["metadata"]
        cls.pod = f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}"

    def measure(self, seconds):
        """The median and the 95th percentile in ms of GETs of health and of a pod, each on a connection of its own."""
        times = {"/healthz": [], self.pod: []}
        with contextlib.ExitStack() as stack:
            connections = {target: stack.enter_context(contextlib.closing(self.served.open())) for target in times}
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                for target, taken in times.items():
                    began = time.perf_counter()
                    connections[target].request("GET", target)
                    answer = connections[target].getresponse()
                    answer.read()
                    taken.append((time.perf_counter() - began) * 1000)
                    self.assertEqual(answer.status, 200)
                time.sleep(0.005)
        return {target: (statistics.median(taken), sorted(taken)[len(taken) * 95 // 100])
                for target, taken in times.items()}

    def crowd(self, what, target, n=100, **headers):
        processes = crowd_out(self.served.address, [(target, headers)] * n, 3)
        try:
            time.sleep(0.5)
            measured = self.measure(2)
        finally:
            for process in processes:
                process.join()
        health, get = measured["/healthz"], measured[self.pod]
        print(f"  {what}: /healthz {health[0]:.1f} ms ({health[1]:.1f}), GET {get[0]:.1f} ms ({get[1]:.1f})")
        self.assertLess(health[1], 50, "/healthz, 95 of 100")
        self.assertLess(get[0], 5, "GET, the median")

    def test_thousands_of_requirements_hold_nobody_up(self):
        self.crowd("one label 3,000 times", "/api/v1/pods?limit=1&labelSelector=" + ",".join(["!a"] * 3000))
        self.crowd("3,000 labels", "/api/v1/pods?limit=1&labelSelector=" + ",".join(f"!a{i}" for i in range(3000)))
        self.crowd("3,000 names", "/api/v1/pods?limit=1&fieldSelector=" + ",".join(f"metadata.name!=a{i}" for i in range(1000)))

    def test_walks_that_find_nothing_hold_nobody_up(self):
        self.crowd("a label that nobody has", "/api/v1/pods?labelSelector=nobody")
        self.crowd("a phase that nobody has", "/api/v1/pods?limit=5&fieldSelector=status.phase=Unknown")

    def test_whole_lists_hold_nobody_up(self):
        self.crowd("lists, compressed", "/api/v1/pods", **{"Accept-Encoding": "gzip"})
        self.crowd("lists as Tables", "/api/v1/pods", Accept="application/json;as=Table;v=v1;g=meta.k8s.io")

    def test_replays_hold_nobody_up(self):
        self.crowd("watches that begin with the state", "/api/v1/pods?watch=1&labelSelector=nobody,"
                   + ",".join(f"!a{i}" for i in range(1000)))

    def test_nothing_goes_on_for_a_client_that_has_gone(self):
        # A walk that takes some ticks of the clock by which CPU is told.
        target = "/api/v1/pods?labelSelector=" + ",".join([f"!a{i}" for i in range(60)] + ["nobody"])
        before = cpu_seconds(self.served)
        for _ in range(40):
            self.assertEqual(body_of(self.served, target)["items"], [])
        whole, before = cpu_seconds(self.served) - before, cpu_seconds(self.served)
        for _ in range(40):
            with contextlib.closing(connect(self.served)) as raw:
                raw.sendall(f"GET {target} HTTP/1.1\r\n".encode() + HEAD)
        wait_until(lambda: body_of(self.served, "/debug/state")["underWay"] == 1, "nothing is under way")
        left = cpu_seconds(self.served) - before
        print(f"  40 walks: {whole:.2f} s of CPU, of clients that left: {left:.2f} s")
        self.assertLess(left, whole / 2)

    def test_a_stop_waits_for_no_walk(self):
        with Served(resource=("pods",), mode="release", kubeconfig=self.sim.kubeconfig) as served:
            lists = [("/api/v1/pods", {"Accept-Encoding": "gzip"}), ("/api/v1/pods?labelSelector=nobody", {})] * 50
            processes = crowd_out(served.address, lists, 3)
            time.sleep(1)
            began = time.monotonic()
            served.daemon.process.terminate()
            self.assertEqual(served.daemon.process.wait(PATIENCE), 0)
            took = time.monotonic() - began
            for process in processes:
                process.join()
        print(f"  stopped in {took:.2f} s")
        # Those who read have two seconds to take what is on its way.
        self.assertLess(took, 4)


@needs_sim("servers of its own")
class Probes(unittest.TestCase):
    """healthListen: an address that answers nothing but probes, to anybody."""

    def test_it_answers_probes_and_nothing_else(self):
        with Sim("--generate", "pods=3", "--log-level", "warn") as sim, \
                Daemon("--health-listen", "127.0.0.1:0", kubeconfig=sim.kubeconfig, resource=("pods",)) as daemon:
            address = wait_until(lambda: re.search(r"answering probes url=http://(\S+)", daemon.log_text()),
                                 "the address").group(1)

            def status(target, method="GET", host=None):
                with contextlib.closing(http.client.HTTPConnection(address, timeout=PATIENCE)) as connection:
                    connection.request(method, target, headers={"Host": host or address})
                    return connection.getresponse().status
            wait_until(lambda: status("/readyz") == 200, "ready")
            for target in ("/healthz", "/livez", "/readyz?verbose"):
                self.assertEqual(status(target), 200, target)
                self.assertEqual(status(target, host="10.1.2.3:8081"), 200, target)
            for target in ("/", "/metrics", "/debug/state", "/version", "/api", "/api/v1/pods", "/readyz/discovery"):
                self.assertEqual(status(target), 404, target)
            self.assertEqual(status("/healthz", "POST"), 405)
            self.assertEqual(status("/api/v1/namespaces/default/pods", "POST"), 404)
            daemon.stop()

    def test_nor_does_a_socket(self):
        with Sim("--generate", "pods=3", "--log-level", "warn") as sim, tempfile.TemporaryDirectory() as folder, \
                Daemon("--health-listen", f"unix:{folder}/probes", kubeconfig=sim.kubeconfig, resource=("pods",)) as daemon:
            daemon.wait_logged("answering probes")

            def status(target):
                with contextlib.closing(http.client.HTTPConnection("localhost", timeout=PATIENCE)) as connection:
                    connection.sock = socket.socket(socket.AF_UNIX)
                    connection.sock.connect(folder + "/probes")
                    connection.request("GET", target)
                    return connection.getresponse().status
            wait_until(lambda: status("/readyz") == 200, "ready")
            for target in ("/", "/metrics", "/debug/state", "/api", "/api/v1/pods"):
                self.assertEqual(status(target), 404, target)
            daemon.stop()

    def test_what_is_no_address_is_refused(self):
        code, _, err = run_daemon("--resource", "pods", "--health-listen", "8081")
        self.assertEqual(code, 2)
        self.assertIn("8081", err)


if __name__ == "__main__":
    unittest.main()
