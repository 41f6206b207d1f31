"""kinformer-sim as a program: what it prints, what it starts with, what it can be told, how it ends."""

import contextlib
import glob
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest

from harness import PATIENCE, ROOT, Daemon, needs_sim, wait_until
from sim import Sim, sim_path

SAMPLE = os.path.join(ROOT, "config", "sample.yaml")
USAGE, FAILED = 2, 1
MAPS = "/api/v1/namespaces/default/configmaps"


def send(sim, method, target, body=None, kind="application/json"):
    """(status, answer)"""
    with contextlib.closing(sim.open()) as connection:
        connection.request(method, target, body=body and json.dumps(body), headers={"Content-Type": kind})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def items(sim, target):
    status, body = send(sim, "GET", target)
    if status != 200:
        raise AssertionError(f"{target}: {status} {body}")
    return body["items"]


def versions(sim, target=MAPS):
    return {f"{item['metadata']['namespace']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
            for item in items(sim, target)}


def put(sim, name, data="x"):
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": data}}
    status, body = send(sim, "POST", MAPS, item)
    if status == 409:
        status, body = send(sim, "PATCH", f"{MAPS}/{name}", {"data": {"value": data}}, "application/merge-patch+json")
    if status not in (200, 201):
        raise AssertionError(f"{name}: {status} {body}")


@needs_sim("that is what it tests")
class Content(unittest.TestCase):
    def test_it_serves_what_it_loads_and_brings_it_to_life(self):
        with Sim("--load", SAMPLE) as sim:
            self.assertEqual(send(sim, "GET", "/version")[1]["major"], "1")
            names = {item["metadata"]["name"] for item in items(sim, "/apis/apps/v1/namespaces/shop/deployments")}
            self.assertTrue({"web", "cart"} <= names)

            def is_running():
                phases = [pod["status"].get("phase") for pod in items(sim, "/api/v1/namespaces/shop/pods?labelSelector=app=web")]
                return phases == ["Running"] * 3
            wait_until(is_running, "three pods of web run")
            self.assertLess(sim.stop(), 10)

    def test_it_makes_as_many_objects_as_it_is_told(self):
        with Sim("--generate", "pods=500,nodes=5", "--no-workloads") as sim:
            self.assertEqual(len(items(sim, "/api/v1/nodes")), 5)
            pods = items(sim, "/api/v1/pods")
            self.assertEqual(len(pods), 500)
            self.assertEqual(len({pod["metadata"]["uid"] for pod in pods}), 500)

    def test_the_same_seed_makes_the_same(self):
        def names(seed):
            with Sim("--generate", "pods=50,nodes=5", "--no-workloads", "--seed", seed) as sim:
                return sorted(pod["metadata"]["name"] for pod in items(sim, "/api/v1/pods"))
        self.assertEqual(names("7"), names("7"))

    def test_it_changes_objects_as_often_as_it_is_told(self):
        with Sim("--generate", "pods=100,nodes=5", "--churn", "20/s") as sim:
            def version():
                return int(send(sim, "GET", "/api/v1/pods?limit=1")[1]["metadata"]["resourceVersion"])
            # What it starts with comes to rest first.
            time.sleep(2)
            began, first = time.monotonic(), version()
            time.sleep(5)
            rate = (version() - first) / (time.monotonic() - began)
            self.assertTrue(8 <= rate <= 60, f"{rate:.1f} changes a second")

    def test_clients_come_by_tls_and_tokens(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as policy:
            policy.write("users:\n- {name: alice, token: token-of-alice}\nrules:\n- users: [alice]\n  apiGroups: ['']\n"
                         "  resources: [configmaps]\n  verbs: [list, watch]\n")
            policy.flush()
            with Sim("--tls", "--policy", policy.name) as sim:
                with open(sim.kubeconfig, encoding="utf-8") as file:
                    self.assertIn("server: https://", file.read())
                with Daemon(kubeconfig=sim.kubeconfig, resource=("configmaps",)) as daemon:
                    daemon.wait_synced()
                    daemon.stop()
                context = ssl.create_default_context()
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                for target, token, wanted in ((MAPS, "token-of-alice", 200), (MAPS, "of-nobody", 401),
                                              (MAPS, None, 403), ("/api/v1/pods", "token-of-alice", 403)):
                    with contextlib.closing(http.client.HTTPSConnection(sim.address, context=context,
                                                                        timeout=PATIENCE)) as connection:
                        connection.request("GET", target, headers={} if token is None else
                                           {"Authorization": "Bearer " + token})
                        self.assertEqual(connection.getresponse().status, wanted, (target, token))


@needs_sim("that is what it tests")
class Actions(unittest.TestCase):
    """A daemon on it comes through whatever befalls the server."""

    def setUp(self):
        self.sim = self.enterContext(Sim("--fault-listen", "127.0.0.1:0"))
        put(self.sim, "before")
        self.daemon = self.enterContext(Daemon(kubeconfig=self.sim.kubeconfig, resource=("configmaps",)))
        self.daemon.wait_synced()
        put(self.sim, "watched")
        self.daemon.wait_types("default/watched", "ADDED")

    def check(self):
        put(self.sim, "after")
        self.daemon.wait_equal(lambda: versions(self.sim, "/api/v1/configmaps"), "configmaps")
        self.daemon.stop()
        self.sim.stop()

    def test_a_restored_state_is_taken_over(self):
        self.assertEqual(self.sim.control("POST", "/actions/restore")[0], 409)
        self.sim.act("backup")
        put(self.sim, "watched", "changed")
        put(self.sim, "undone")
        self.daemon.wait_types("default/undone", "ADDED")
        self.sim.act("restore")
        self.daemon.wait_types("default/undone", "ADDED", "DELETED")
        self.check()

    def test_an_expired_history_costs_a_list(self):
        self.sim.act("expire")
        self.daemon.wait_logged("listed resource=configmaps", 2)
        self.check()
        self.assertEqual([event["type"] for event in self.daemon.events_of("default/before")], ["ADDED"])

    def test_broken_connections_cost_no_list(self):
        self.sim.act("drop")
        self.daemon.wait_logged("watch=1", 2)
        self.check()
        self.assertEqual(self.daemon.count_log("listed resource=configmaps"), 1)

    def test_a_fault_hits_what_it_selects_until_it_is_taken_back(self):
        status, answer = self.sim.control("POST", "/faults", "list configmaps 503\n")
        self.assertEqual(status, 201, answer)
        self.assertEqual(send(self.sim, "GET", MAPS)[0], 503)
        self.assertEqual(send(self.sim, "GET", "/api/v1/pods")[0], 200)
        [fault] = self.sim.control("GET", "/faults")[1]["faults"]
        self.assertEqual(fault["hits"], 1)
        self.sim.control("DELETE", "/faults")
        self.check()

    def test_what_it_cannot_do_is_said(self):
        self.assertEqual(self.sim.control("POST", "/actions/rotate")[0], 501)
        self.assertEqual(self.sim.control("POST", "/actions/dance")[0], 404)
        self.assertEqual(self.sim.control("POST", "/faults", "dance")[0], 400)
        self.check()


@needs_sim("that is what it tests")
class Rotation(unittest.TestCase):
    def test_another_certificate_is_shown_and_trusted(self):
        def certificate(sim):
            host, _, port = sim.address.rpartition(":")
            return ssl.get_server_certificate((host, int(port)))

        with Sim("--tls", "--fault-listen", "127.0.0.1:0") as sim, \
                Daemon(kubeconfig=sim.kubeconfig, resource=("namespaces",)) as daemon:
            daemon.wait_synced()
            before = certificate(sim)
            sim.act("rotate")
            wait_until(lambda: certificate(sim) != before, "another certificate")
            sim.act("drop")
            daemon.wait_logged("watch=1", 2)
            daemon.stop()


@needs_sim("that is what it tests")
class Ends(unittest.TestCase):
    def complains(self, code, *args, words=()):
        """One line, and the exit code."""
        done = subprocess.run([sim_path(), *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in ("kinformer-sim: ", *words):
            self.assertIn(word, done.stderr)

    def test_wrong_options_are_usage_errors_of_one_line(self):
        for args, word in ((["--nonsense"], "--nonsense"), (["--seed", "x"], "--seed"), (["--load"], "--load"),
                           (["stray"], "stray"), (["--history", "much"], "--history"),
                           (["--listen", "0.0.0.0:0"], "--tls"), (["--generate", "unicorns=3"], "unicorns"),
                           (["--churn", "fast"], "fast"), (["--fault", "dance"], "dance"),
                           (["--listen", "127.0.0.1:0", "--log-level", "loud"], "loud")):
            with self.subTest(args=args):
                self.complains(USAGE, *args, words=[word])

    def test_a_full_disk_is_named(self):
        for args in (["--version"], ["--listen", "127.0.0.1:0"]):
            with self.subTest(args), open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([sim_path(), *args], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
                                      text=True, timeout=PATIENCE, check=False, env={**os.environ, "KINF_LOG": ""})
                self.assertEqual(done.returncode, FAILED)
                self.assertIn("cannot write to standard output: No space left on device", done.stderr)

    def test_files_that_cannot_be_read_are_named(self):
        for flag in ("--load", "--policy"):
            self.complains_of_any(flag, "/no/such/file", "No such file")
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
            file.write("apiVersion: v1\nkind: [\n")
            file.flush()
            self.complains(USAGE, "--load", file.name, words=[file.name])

    def complains_of_any(self, flag, path, words):
        done = subprocess.run([sim_path(), flag, path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
        self.assertIn(done.returncode, (USAGE, FAILED))
        self.assertIn(path, done.stderr)
        self.assertIn(words, done.stderr)

    def test_a_port_in_use_is_named(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            self.complains(FAILED, "--listen", f"127.0.0.1:{port}", words=[str(port), "in use"])

    def test_signals_end_it_within_a_second_and_no_file_is_left(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number), tempfile.TemporaryDirectory() as folder, \
                    Sim("--tls", "--load", SAMPLE, "--churn", "20/s", mode="release",
                        env={"TMPDIR": folder}) as sim:
                self.assertEqual(len(os.listdir(folder)), 1, "the certificates' folder")
                with Daemon(kubeconfig=sim.kubeconfig) as daemon:
                    daemon.wait_synced()
                    began = time.monotonic()
                    sim.process.send_signal(number)
                    self.assertEqual(sim.process.wait(PATIENCE), 0)
                    self.assertLess(time.monotonic() - began, 1)
                    self.assertEqual(os.listdir(folder), [])
                    daemon.stop()

    def test_without_a_certificate_to_change_it_ends_with_its_terminal(self):
        """Else it would have the port for ever. Who runs these tests may be told to stay."""
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL))
        with Sim() as sim:
            sim.process.send_signal(signal.SIGHUP)
            self.assertEqual(sim.process.wait(PATIENCE), -signal.SIGHUP)


@needs_sim("that is what it tests")
class MakeRun(unittest.TestCase):
    def test_one_command_shows_a_cluster_and_its_cache_and_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as out:
            process = subprocess.Popen(
                [os.path.join(ROOT, "scripts", "run-daemon.sh"), os.path.join(ROOT, "build", "asan", "bin")], cwd=ROOT,
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
                env={**os.environ, "SIM": "1", "TMPDIR": folder})
            try:
                def printed(pattern):
                    out.seek(0)
                    return re.search(pattern, out.read())

                url = wait_until(lambda: printed(r"status page +http://(\S+)/"), "the address of the page").group(1)
                self.check_page(url)
                wait_until(lambda: printed(r"(?m)^\S* ?(ADDED|added).*shop/|shop/.*"), "pods of the sample")
                os.killpg(process.pid, signal.SIGINT)
                self.assertIn(process.wait(PATIENCE), (0, 130))
                self.assertEqual(glob.glob(os.path.join(folder, "*")), [])
                self.assertEqual(processes_of(process.pid), [])
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def test_an_interrupt_ends_it_also_when_the_daemon_has_ended_by_then(self):
        """Bash may be just then about to hear of that; by chance, so it is tried often."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("kinformer-sim", "#!/bin/sh\necho serving\nexec sleep 20\n"),
                               ("kinformerd", "#!/bin/sh\necho $$\nexec sleep 20\n")):
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                os.chmod(path, 0o700)
            for _ in range(20):
                with subprocess.Popen([os.path.join(ROOT, "scripts", "run-daemon.sh"), folder], cwd=ROOT, text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                      start_new_session=True, env={**os.environ, "SIM": "1", "TMPDIR": folder}) as process:
                    try:
                        while not (line := process.stdout.readline()).strip().isdigit():
                            pass
                        os.kill(int(line), signal.SIGKILL)
                        os.kill(process.pid, signal.SIGINT)
                        self.assertIn(process.wait(10), (130, 128 + signal.SIGKILL))
                    finally:
                        with contextlib.suppress(ProcessLookupError):
                            os.killpg(process.pid, signal.SIGKILL)
            self.assertEqual(sorted(os.listdir(folder)), ["kinformer-sim", "kinformerd"])

    def check_page(self, url):
        def page():
            try:
                return subprocess.run(["curl", "-sf", "-H", "Accept: text/html", f"http://{url}/"], check=True, text=True,
                                      stdout=subprocess.PIPE, timeout=PATIENCE).stdout
            except subprocess.CalledProcessError:
                return None
        self.assertIsNotNone(shutil.which("curl"))
        self.assertIn("<html", wait_until(page, "the page"))


def processes_of(group):
    """What is left of a process group."""
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
            state, _, of = file.read().rpartition(")")[2].split()[:3]
            if int(of) == group and state != "Z":
                found.append(path)
    return found


if __name__ == "__main__":
    unittest.main()
