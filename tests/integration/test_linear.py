"""What the sidecar promises of its reads, held to recorded histories by a checker (tests/linear), through faults.

KINF_LINEAR_SECONDS is how long each run takes, KINF_TEST_SEED repeats its schedule of operations and of faults.
"""

import json
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

from harness import PATIENCE, ROOT, Daemon, Proxy, cluster, lack, needs_cluster, needs_sim, wait_until
from sim import Sim
from test_serve_pass import token_of

SECONDS = float(os.environ.get("KINF_LINEAR_SECONDS", 12))
SEED = int(os.environ.get("KINF_TEST_SEED", random.randrange(1 << 32)))
NAMESPACE = "linear"
MODES = {"configmaps": "session", "secrets": "cache", "serviceaccounts": "latest"}
SEEN = ",".join(MODES)
PROGRAM = os.path.join(ROOT, "build", "linear")

# What always may happen to a request of a client: answers that are lost, late, cut off, or refused.
CONSTANT = [f"write {SEEN} reset after=0 p=0.02", f"write {SEEN} cut early p=0.02",
            f"write {SEEN} 500 late p=0.01", f"write {SEEN} 503 p=0.01", f"write {SEEN} hang=300ms late p=0.05",
            f"get,list {SEEN} hang=100ms p=0.05", f"get,list {SEEN} reset p=0.01"]
# What becomes of the watches that begin next, once. Reads wait for three seconds.
STALLED = f"watch {SEEN} stall=4500ms after=3events times=3"
OF_WATCHES = [STALLED, f"watch {SEEN} drip=300/100ms times=3 for=4s",
              f"watch {SEEN} error after=2events times=3", f"watch {SEEN} reset after=5events times=6",
              f"watch {SEEN} twice times=3", f"watch {SEEN} 503 times=6", f"list {SEEN} 503 times=2"]


def setUpModule():
    if shutil.which("go") is None:
        lack("go")
    subprocess.run(["go", "build", "-o", PROGRAM, "."], cwd=os.path.join(ROOT, "tests", "linear"), check=True,
                   env={**os.environ, "CGO_ENABLED": "0"})


class Sidecar:
    """A daemon that may be killed or ended: the next one is at the same address."""

    def __init__(self, folder, kubeconfig):
        self.kubeconfig = kubeconfig
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = "127.0.0.1:%d" % free.getsockname()[1]
        self.path = os.path.join(folder, "config.yaml")
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump({"listen": [self.address], "events": "none", "passThrough": True, "stateDir": folder + "/state",
                       "stateInterval": "1s", "resources": [{"resource": resource, "namespaces": [NAMESPACE],
                                                             "consistency": mode, "serve": True,
                                                             "backoffBase": "50ms", "backoffMax": "300ms"}
                                                            for resource, mode in MODES.items()]}, file)
        self.start()

    def start(self):
        self.daemon = Daemon(config=self.path, kubeconfig=self.kubeconfig)

    def __enter__(self):
        self.wait_ready()
        return self

    def __exit__(self, *reason):
        self.daemon.__exit__(*reason)

    def wait_ready(self):
        self.daemon.wait_logged("all synced")

    def restart(self, chance):
        self.daemon.wait_logged("serving url")
        if chance.random() < 0.5:
            self.daemon.process.kill()
        else:
            self.daemon.stop()
        self.daemon.__exit__(None, None, None)
        self.start()


class Clients:
    """The program once for each mode, at once."""

    def __init__(self, test, sidecar, token):
        self.test = test
        self.programs = {
            mode: subprocess.Popen([PROGRAM, "-server", "http://" + sidecar.address, "-token", token, "-namespace",
                                    NAMESPACE, "-resource", resource, "-mode", mode, "-seed", str(SEED), "-seconds",
                                    str(SECONDS), "-record", f"{PROGRAM}-{mode}.history"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for resource, mode in MODES.items()}

    def are_busy(self):
        return any(program.poll() is None for program in self.programs.values())

    def results(self):
        """What each has found; a contradiction fails the test."""
        done = {mode: (*program.communicate(timeout=PATIENCE), program.returncode)
                for mode, program in self.programs.items()}
        for mode, (out, err, code) in done.items():
            print(f"  {mode}: {out.strip() or code}")
            self.test.assertEqual(code, 0, f"seed {SEED}: {err[:10000]}")
        return {mode: json.loads(out) for mode, (out, _, _) in done.items()}


class Promises(unittest.TestCase):
    def hold(self, sidecar, token, first, moments):
        """Runs the clients; the moments are what befalls the servers, and return how long it lasts."""
        chance = random.Random(SEED)
        clients = Clients(self, sidecar, token)
        moment = first
        while clients.are_busy():
            time.sleep(chance.uniform(0.5, 2))
            time.sleep(moment(chance) or 0)
            moment = chance.choice(moments)
            sidecar.daemon.check()
        results = clients.results()
        for mode, result in results.items():
            self.assertEqual(result["undecided"], 0, mode)
            self.assertGreater(result["outcomes"]["ok"], 50, mode)
        self.assertGreater(results["session"]["cachedReads"], 0)
        self.assertEqual(results["latest"]["cachedReads"], 0)
        return results

    @needs_sim("faults of single answers")
    def test_on_a_server_whose_answers_fail(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        sim = self.enterContext(Sim("--tls", "--fault-listen", "127.0.0.1:0", "--seed", str(SEED)))
        sim.kubectl("create", "namespace", NAMESPACE)
        sidecar = self.enterContext(Sidecar(folder, sim.kubeconfig))

        def watches(chance):
            fault = chance.choice(OF_WATCHES)
            sim.control("POST", "/faults", fault + "\n")
            sim.act("drop")
            return 4.5 if fault == STALLED else 0

        def forget(_):
            sim.act("expire")
            sim.act("drop")

        sim.control("POST", "/faults", "\n".join(CONSTANT) + "\n")
        results = self.hold(sidecar, "any", sidecar.restart,
                            [watches] * 5 + [forget, sidecar.restart])
        # Else they would prove nothing: answers were lost, and there was what a session does not allow.
        self.assertGreater(results["session"]["outcomes"]["unknown"], 0)
        self.assertGreater(results["cache"]["stale"], 0)
        sim.control("DELETE", "/faults")
        sidecar.wait_ready()
        sidecar.daemon.stop()

    @needs_cluster("its own order of events")
    def test_on_a_real_server(self):
        cluster().make_namespace(NAMESPACE)
        folder = self.enterContext(tempfile.TemporaryDirectory())
        proxy = self.enterContext(Proxy())
        sidecar = self.enterContext(Sidecar(folder, proxy.kubeconfig(folder)))

        def hold_watches(_):
            """Of all connections they alone are sent nothing for long."""
            now = time.monotonic()
            proxy.silent = {server for server, sent_at in list(proxy.sent_at.items()) if now - sent_at > 1}
            time.sleep(4)
            proxy.silent = set()

        def stall(chance):
            proxy.stall.set()
            time.sleep(chance.uniform(0.2, 1))
            proxy.stall.clear()

        self.hold(sidecar, token_of("admin-token"), lambda _: cluster().forget(),
                  [hold_watches, stall, lambda _: proxy.drop(), sidecar.restart])
        sidecar.wait_ready()
        sidecar.daemon.stop()


def ops(*rows):
    """A history: each row is (client, call, return, kind, what differs), of one key."""
    return [{"client": client, "call": call, "return": end, "kind": kind, "outcome": "ok",
             **({"key": "k"} if kind != "list" else {}), **more} for client, call, end, kind, more in rows]


def found(value, version):
    return {"objects": {"k": {"value": value, "version": version, "uid": "u"}}}


def wrote(value, version):
    return {"value": value, **found(value, version)}


def listed(value, version, at):
    return {**found(value, version), "version": at}


NOTHING = {"outcome": "absent"}
A, B = (0, 0, 1, "create", wrote("a", 5)), (0, 2, 3, "update", wrote("b", 6))
GONE = (0, 2, 3, "delete", {})
LOST = (0, 2, 3, "update", {"value": "b", "outcome": "unknown"})
ALL, ONLY_LATEST, NO_CACHE = {"latest", "session", "cache"}, {"latest"}, {"latest", "session"}


@needs_sim("no server at all")
class Checker(unittest.TestCase):
    """It refuses what is known to be wrong, in the modes that promise otherwise, and nothing else."""

    def check(self, wrong_in, *rows, modes=ALL, says=""):
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in ops(*rows))
            file.flush()
            for mode in modes:
                done = subprocess.run([PROGRAM, "-mode", mode, "-check", file.name], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, check=False)
                self.assertEqual(done.returncode, int(mode in wrong_in), (mode, done.stderr))
                if mode in wrong_in:
                    self.assertIn(says, done.stderr)

    def test_a_stale_read(self):
        self.check(NO_CACHE, A, B, (1, 4, 5, "get", found("a", 5)), says="client 1")
        self.check(set(), A, B, (1, 4, 5, "get", found("b", 6)))
        self.check(set(), A, B, (1, 2, 4, "get", found("a", 5)))

    def test_a_lost_own_write(self):
        self.check(NO_CACHE, A, (0, 2, 3, "get", NOTHING), says="client 0")
        self.check(NO_CACHE, A, GONE, (0, 4, 5, "get", found("a", 5)), says="client 0")

    def test_a_version_that_goes_back(self):
        self.check(ALL, A, LOST, (1, 4, 5, "get", found("b", 6)), (1, 6, 7, "get", found("a", 5)), says="client 1")
        self.check(ALL, A, LOST, (1, 4, 5, "get", {**found("b", 6), "passed": True}), (1, 6, 7, "get", found("a", 5)),
                   says="client 1")
        self.check(ALL, A, LOST, (1, 4, 5, "get", found("a", 5)), (1, 6, 7, "get", NOTHING),
                   (1, 8, 9, "get", found("a", 5)), says="client 1")

    def test_one_that_goes_back_for_two_clients(self):
        self.check(ONLY_LATEST, A, (0, 2, 9, "update", wrote("b", 6)), (1, 3, 4, "get", found("b", 6)),
                   (2, 5, 6, "get", found("a", 5)), says="client 2")

    def test_an_answer_that_never_came(self):
        later = (1, 6, 7, "get", found("b", 6))
        self.check(set(), A, LOST, (1, 4, 5, "get", found("a", 5)), later)
        self.check(set(), A, LOST, later)
        self.check(set(), A, LOST)
        self.check(ALL, A, (0, 2, 3, "update", {"value": "b", "outcome": "absent"}), later, says="refused")

    def test_a_write_that_is_carried_out_twice(self):
        """As the second of a request that was sent again would be answered."""
        self.check(ALL, (0, 0, 1, "create", {"value": "a", "outcome": "exists"}))
        self.check(ALL, A, (0, 2, 3, "update", {"value": "b", "if": 5, "outcome": "conflict"}))

    def test_two_updates_of_one_version(self):
        self.check(ALL, A, *((client, 2, 3, "update", {**wrote(value, version), "if": 5})
                             for client, value, version in ((0, "b", 6), (1, "c", 7))))

    def test_values_that_nobody_wrote(self):
        self.check(ALL, A, (1, 2, 3, "get", found("z", 6)), says="nobody wrote")
        self.check(ALL, A, (1, 2, 3, "get", found("a", 6)), says="two versions")

    def test_how_stale_a_cache_is_needs_no_answer(self):
        """Among updates that may all have been carried out or not it would take for ever to say."""
        lost = [(client, 2, 3, "update", {"value": f"lost-{client}", "outcome": "unknown"}) for client in range(2, 42)]
        began = time.monotonic()
        self.check(set(), A, B, *lost, (1, 4, 5, "get", found("a", 5)), modes={"cache"})
        self.assertLess(time.monotonic() - began, 10)

    def test_lists(self):
        self.check(set(), A, B, (1, 4, 5, "list", listed("b", 6, 7)))
        self.check(NO_CACHE, A, B, (1, 4, 5, "list", listed("a", 5, 5)))
        self.check(ALL, A, B, (1, 4, 5, "list", listed("a", 5, 6)), says="not of one version")
        self.check(ALL, A, B, (1, 4, 5, "list", {"objects": {}, "version": 5}), says="lacks")
        self.check({"cache"}, A, (1, 2, 3, "list", listed("a", 5, 9)), (1, 4, 5, "list", listed("a", 5, 8)),
                   says="older")


if __name__ == "__main__":
    unittest.main()
