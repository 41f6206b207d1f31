"""Sharded controllers and handlers: whatever their number is changed to, never two act on an object."""

import collections
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from harness import PATIENCE, ROOT, Daemon, build_probe, cluster, fnv1a64, needs_cluster, read_notes, run_daemon, wait_until

FOLDER = None
PROGRAM = None
ALL = 1 << 64

LEASE_MS = 4000
RENEW_MS = 3000
RETRY_MS = 300

Process = collections.namedtuple("Process", "identity n shard popen")


def setUpModule():
    global FOLDER, PROGRAM
    FOLDER = tempfile.TemporaryDirectory(prefix="kinformer-shards-")
    PROGRAM = build_probe(FOLDER.name, "shard_probe.c", ["cc", "-std=c11", "-D_GNU_SOURCE"])


def tearDownModule():
    FOLDER.cleanup()


def part(n, shard):
    """The hashes of a shard: [start, end)."""
    return shard * ALL // n, (shard + 1) * ALL // n


def do_overlap(a, b):
    return a[0] < b[1] and b[0] < a[1]


def make_maps(namespace, names, n_round):
    items = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace},
              "data": {"round": str(n_round)}} for name in names]
    cluster().kubectl("apply", "--server-side", "-f", "-",
                      stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


class Sharded(unittest.TestCase):
    def setUp(self):
        self.namespace = "shards-" + self.id().rpartition(".")[2].replace("_", "-")[5:40].strip("-")
        cluster().make_namespace(self.namespace)
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.names = [f"map-{i}" for i in range(24)]
        make_maps(self.namespace, self.names, 0)

    def maps(self):
        text = cluster().kubectl("get", "configmaps", "-n", self.namespace, "-o", "json")
        return [item for item in json.loads(text)["items"] if item["metadata"]["name"] in self.names]


class Controllers(Sharded):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "lines")
        self.processes = {}  # that run, by shard
        self.parts = {}      # of all identities
        self.addCleanup(self.end_all)

    def end_all(self):
        for process in self.processes.values():
            if process.popen.poll() is None:
                process.popen.send_signal(signal.SIGCONT)
                process.popen.kill()
            process.popen.wait()

    def start(self, n, shard):
        identity = f"{shard}-of-{n}-{len(self.parts)}"
        self.parts[identity] = part(n, shard)
        self.processes[identity] = Process(identity, n, shard, subprocess.Popen(
            [PROGRAM, identity, self.namespace, "set", self.path, str(LEASE_MS), str(RENEW_MS), str(RETRY_MS), str(n),
             str(shard)], stdin=subprocess.DEVNULL, env={**os.environ, "KUBECONFIG": cluster().kubeconfig()}))
        return identity

    def stop(self, identity):
        process = self.processes.pop(identity)
        process.popen.send_signal(signal.SIGTERM)
        self.assertEqual(process.popen.wait(PATIENCE), 0)

    def kill(self, identity):
        process = self.processes.pop(identity)
        process.popen.kill()
        process.popen.wait()

    def running(self, shard):
        return next(process.identity for process in self.processes.values() if process.shard == shard)

    def acts(self):
        """From when until when each acted in each term. No two of overlapping parts ever did at once."""
        spans = {}
        for identity, term, at in read_notes(self.path, "act"):
            spans.setdefault((identity, int(term)), []).append(int(at))
        acts = [(min(times), max(times), identity) for (identity, _), times in spans.items()]
        acts.sort()
        for i, (_, last, one) in enumerate(acts):
            for first, _, other in acts[i + 1:]:
                if other != one and do_overlap(self.parts[one], self.parts[other]):
                    self.assertLess(last, first, f"{one} and {other} act at once")
        return acts

    def wait_acting(self, identity, since_ms=0):
        def found():
            return [act for act in self.acts() if act[2] == identity and act[1] >= since_ms]
        return wait_until(found, f"{identity} acts")

    def check_round(self, n_round):
        """Gives everybody something to do, and waits until all of it is done, by those who are to."""
        make_maps(self.namespace, self.names, n_round)

        def done():
            self.acts()
            return all(item["data"].get("done") == str(n_round) for item in self.maps())
        wait_until(done, f"round {n_round} is done")
        owners = collections.defaultdict(set)
        for identity, key, number in read_notes(self.path, "did"):
            if int(number) == n_round:
                owners[key].add(identity)
        for item in self.maps():
            value = int(fnv1a64(item["metadata"]["uid"].encode()), 16)
            key = f"{self.namespace}/{item['metadata']['name']}"
            [owner] = owners[key]
            self.assertEqual(item["data"]["by"], owner)
            first, end = self.parts[owner]
            self.assertTrue(first <= value < end)
            self.assertIn(owner, self.processes)

    def roll_out(self, before, after):
        """As a StatefulSet does when its replicas and its template change: first those that are too many go, or that
        are missing come; then each is replaced, the last one first."""
        for shard in range(before - 1, after - 1, -1):
            self.stop(self.running(shard))
        for shard in range(before, after):
            self.start(after, shard)
        for shard in range(min(before, after) - 1, -1, -1):
            self.stop(self.running(shard))
            self.start(after, shard)

    def wait_all(self):
        since_ms = time.clock_gettime(time.CLOCK_BOOTTIME) * 1000
        for identity in list(self.processes):
            self.wait_acting(identity, since_ms)

    def test_each_object_has_one_of_three(self):
        for shard in range(3):
            self.start(3, shard)
        self.wait_all()
        for n_round in range(1, 4):
            self.check_round(n_round)
        owners = {item["data"]["by"] for item in self.maps()}
        self.assertEqual(owners, set(self.processes))
        leases = json.loads(cluster().kubectl("get", "leases", "-n", self.namespace, "-o", "json"))["items"]
        self.assertEqual({lease["metadata"]["name"]: lease["metadata"]["annotations"]["kinformer.dev/shard-range"]
                          for lease in leases},
                         {"set-0": "0x0000000000000000,0x5555555555555555",
                          "set-1": "0x5555555555555555,0xaaaaaaaaaaaaaaaa",
                          "set-2": "0xaaaaaaaaaaaaaaaa,0x10000000000000000"})

    def test_from_three_to_four_to_two(self):
        for shard in range(3):
            self.start(3, shard)
        self.wait_all()
        self.check_round(1)
        begin = time.monotonic()
        self.roll_out(3, 4)
        self.wait_all()
        self.check_round(2)
        # One is killed, and comes again; one is halted for longer than others wait, and goes on.
        self.kill(self.running(1))
        self.start(4, 1)
        halted = self.processes[self.running(3)]
        halted.popen.send_signal(signal.SIGSTOP)
        self.wait_acting(self.running(1))
        time.sleep(LEASE_MS / 1000 + 1)
        self.acts()
        halted.popen.send_signal(signal.SIGCONT)
        self.wait_all()
        self.check_round(3)
        self.roll_out(4, 2)
        self.wait_all()
        self.check_round(4)
        self.assertLess(time.monotonic() - begin, PATIENCE)

    def test_one_that_is_halted_acts_no_more_when_others_have_its_part(self):
        halted = self.start(2, 0)
        self.start(2, 1)
        self.wait_all()
        self.processes[halted].popen.send_signal(signal.SIGSTOP)
        self.stop(self.running(1))
        heirs = [self.start(3, shard) for shard in (1, 2)]
        for heir in heirs:
            self.wait_acting(heir)
        self.processes[halted].popen.send_signal(signal.SIGCONT)
        time.sleep(2)
        self.acts()
        self.stop(halted)
        self.start(3, 0)
        self.wait_all()
        self.check_round(1)

    def test_of_two_generations_at_once_one_is_left(self):
        old = [self.start(3, shard) for shard in range(3)]
        new = [self.start(4, shard) for shard in range(4)]
        wait_until(lambda: len({act[2] for act in self.acts()}) >= 2, "some act")
        # Whoever came first to the Lease of a shard has it, and some wait for those that are in their way.
        time.sleep(LEASE_MS / 1000)
        self.acts()
        for identity in old:
            self.kill(identity) if identity.startswith("1") else self.stop(identity)
        for identity in new:
            self.wait_acting(identity)
        self.check_round(1)


# Notes what it is told, and when it begins and ends.
HANDLER = """
import json, os, sys, time
def note(*what):
    os.write(file, (" ".join([*what, os.environ["WHO"], str(int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000))]) + "\\n").encode())
file = os.open(os.environ["NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
note("begin", "-")
for line in sys.stdin:
    event = json.loads(line)
    if "object" in event:
        note("told", event["key"])
note("end", "-")
"""


class Daemons(Sharded):
    def config(self, n, shard, more=""):
        path = os.path.join(self.folder, f"{shard}-of-{n}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"""
shards: {n}
shard: $(POD_INDEX)
lease: {self.namespace}/watchers
listen: ["unix:{self.folder}/{shard}-of-{n}.sock"]
events: json
resources: [{{resource: configmaps, namespaces: [{self.namespace}]}}]
handlers: [{{exec: [{sys.executable}, {self.folder}/handler.py]}}]
{more}""")
        return path

    def setUp(self):
        super().setUp()
        self.notes = os.path.join(self.folder, "notes")
        with open(os.path.join(self.folder, "handler.py"), "w", encoding="utf-8") as file:
            file.write(HANDLER)

    def daemon(self, n, shard, more=""):
        who = f"{shard}/{n}"
        env = {"POD_INDEX": str(shard), "WHO": who, "NOTES": self.notes}
        return self.enterContext(Daemon("--config", self.config(n, shard, more), resource=(), env=env))

    def told(self, who=None):
        """Keys, by who is told; no two programs run at once who have the same objects."""
        running, told = {}, collections.defaultdict(set)
        try:
            with open(self.notes, encoding="utf-8") as file:
                lines = [line.split() for line in file if line.endswith("\n")]
        except FileNotFoundError:
            lines = []
        for what, key, by, _ in lines:
            shard, n = map(int, by.split("/"))
            if what == "begin":
                for other in running.values():
                    self.assertFalse(do_overlap(part(n, shard), other), f"{by} runs beside another")
                running[by] = part(n, shard)
            elif what == "end":
                del running[by]
            else:
                told[by].add(key)
        return told if who is None else told[who]

    def ask(self, which, what):
        return subprocess.run(["curl", "-s", "--unix-socket", f"{self.folder}/{which}.sock", "http://daemon/" + what],
                              check=True, text=True, stdout=subprocess.PIPE).stdout

    def metrics(self, which):
        return self.ask(which, "metrics")

    def keys(self, n, shard):
        """Those of all ConfigMaps of the namespace."""
        items = json.loads(cluster().kubectl("get", "configmaps", "-n", self.namespace, "-o", "json"))["items"]
        first, end = part(n, shard)
        return {f"{self.namespace}/{item['metadata']['name']}" for item in items
                if first <= int(fnv1a64(item["metadata"]["uid"].encode()), 16) < end}

    def test_handlers_of_three_and_then_two(self):
        daemons = [self.daemon(3, shard) for shard in range(3)]
        for shard in range(3):
            wait_until(lambda shard=shard: self.told(f"{shard}/3") == self.keys(3, shard), "its part is told")
        daemons[2].stop()
        daemons[0].stop()
        # Ready, though daemon 1 has a part of what it is to get.
        new = self.daemon(2, 0)
        new.wait_synced(1)
        wait_until(lambda: "of=watchers-1 holder=" in new.log_text(), "it says whom it waits for")
        self.assertIn('kinformer_lease_leads{lease="watchers-0"} 0\n', self.metrics("0-of-2"))
        self.assertIn('kinformer_lease_leads{lease="watchers-1"} 1\n', self.metrics("1-of-3"))
        self.assertEqual(self.ask("0-of-2", "readyz"), "ok")
        self.assertEqual(self.told("0/2"), set())
        daemons[1].stop()
        self.daemon(2, 1)
        for shard in range(2):
            wait_until(lambda shard=shard: self.told(f"{shard}/2") == self.keys(2, shard), "its part is told")
        cluster().kubectl("create", "configmap", "-n", self.namespace, "another")
        wait_until(lambda: f"{self.namespace}/another" in self.told("0/2") | self.told("1/2"), "what is new is told")

    def test_a_lease_without_shards_has_one_that_tells(self):
        path = self.config(1, 0)
        with open(path, encoding="utf-8") as file:
            text = file.read().replace("shards: 1\nshard: $(POD_INDEX)\n", "")
            text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("listen"))
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        daemons = {who: self.enterContext(Daemon("--config", path, resource=(),
                                                 env={"WHO": who, "NOTES": self.notes})) for who in ("0/1", "-1/1")}
        first = next(iter(wait_until(self.told, "one is told")))
        daemons[first].stop()
        [other] = set(daemons) - {first}
        wait_until(lambda: self.told(other) == self.keys(1, 0), "the other one is told")
        lease = json.loads(cluster().kubectl("get", "lease", "-n", self.namespace, "watchers-0", "-o", "json"))
        self.assertEqual(lease["metadata"]["annotations"]["kinformer.dev/shard-range"],
                         "0x0000000000000000,0x10000000000000000")

    def test_a_reload_that_changes_the_shards_is_refused(self):
        daemon = self.daemon(3, 1)
        daemon.wait_synced(1)
        for before, after in (("shards: 3", "shards: 4"), ("lease: ", "shardBy: namespace\nlease: "), ("watchers", "others")):
            path = self.config(3, 1)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(before, after, 1))
            n = daemon.log_text().count("nothing changed")
            daemon.process.send_signal(signal.SIGHUP)
            wait_until(lambda n=n: daemon.log_text().count("nothing changed") > n, "the reload is refused")
            self.assertIn("change only by a restart", daemon.log_text())
        daemon.stop()  # and its handler, which may just have begun, and makes a file


class Configuration(unittest.TestCase):
    def check(self, text, handlers="handlers: [{exec: [cat]}]", **env):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "c.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"{text}\nresources: [{{resource: pods}}]\n{handlers}\n")
            code, _, err = run_daemon("--check-config", "--config", path, "--kubeconfig", cluster().kubeconfig(), env=env)
            return code, err.replace(path, "c.yaml")

    def test_what_cannot_be_meant_is_told_with_its_place(self):
        both = "both are needed, shards, how many there are, and shard, which one this is, from 0: $(POD_INDEX), say"
        for text, wanted in (("shards: 3", "1:9: shards: " + both),
                             ("shard: 1", "1:8: shard: " + both),
                             ("shards: 3\nshard: 3", "2:8: shard: of 3 shards the last one is 2: there is no shard 3"),
                             ("shards: 0\nshard: 0", "1:9: shards: the number of shards is 1 to 1000, not 0"),
                             ("shards: 1001\nshard: 0", "1:9: shards: the number of shards is 1 to 1000, not 1001"),
                             ("shards: 3\nshard: $(POD_INDEX)", "2:8: shard: the environment has no POD_INDEX"),
                             ("shards: 3\nshard: -1", "2:8: shard: a number of up to four digits expected"),
                             ("shards: 3\nshard: 1\nshardBy: name", "3:10: shardBy: uid or namespace expected"),
                             ("shardBy: uid", "1:10: shardBy: needs shards"),
                             ("lease: A_/b", '1:8: lease: "A_" is no name of a namespace'),
                             ("lease: a/b/c", '1:8: lease: "b/c" is no name'),
                             ("lease: My_Lease", "1:8: lease: a name of small letters, digits, '-' and '.' expected"),
                             ("lease: a.-b", "1:8: lease: a name of small letters, digits, '-' and '.' expected"),
                             ("lease: " + 64 * "x", "1:8: lease: a name of at most 63 bytes expected")):
            with self.subTest(text):
                code, err = self.check(text)
                self.assertEqual(code, 2)
                self.assertIn("kinformerd: c.yaml:" + wanted, err)
        code, err = self.check("lease: a", handlers="")
        self.assertEqual((code, err), (2, "kinformerd: lease is for handlers, and there are none: what is served needs none\n"))
        for value in ("", "x", "3"):
            self.assertEqual(self.check("shards: 3\nshard: $(POD_INDEX)", POD_INDEX=value)[0], 2)
        self.assertEqual(self.check("shards: 3\nshard: $(POD_INDEX)\nlease: default/x", POD_INDEX="2"), (0, ""))

    def test_a_lease_of_no_namespace_is_told_as_at_a_start(self):
        with tempfile.TemporaryDirectory() as folder, open(cluster().kubeconfig(), encoding="utf-8") as file:
            kubeconfig, path = os.path.join(folder, "kubeconfig"), os.path.join(folder, "c.yaml")
            with open(kubeconfig, "w", encoding="utf-8") as copy:
                copy.writelines(line for line in file if "namespace:" not in line)
            with open(path, "w", encoding="utf-8") as copy:
                copy.write("lease: x\nresources: [{resource: pods}]\nhandlers: [{exec: [cat]}]\n")
            for args in ((), ("--check-config", "--online")):
                code, _, err = run_daemon(*args, "--config", path, "--kubeconfig", kubeconfig)
                self.assertEqual(code, 2)
                self.assertIn("a namespace is needed", err)

    @needs_cluster("rights")
    def test_rights_to_the_lease_are_checked(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "c.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write("lease: default/x\nresources: [{resource: pods}]\nhandlers: [{exec: [cat]}]\n")
            code, _, err = run_daemon("--check-config", "--online", "--config", path, "--kubeconfig",
                                      cluster().kubeconfig("nobody"))
        self.assertEqual(code, 2)
        for verb in ("get", "create", "update", "list"):
            self.assertIn(f"leases.coordination.k8s.io: no right to {verb}, as lease needs, in the namespace default\n", err)


if __name__ == "__main__":
    unittest.main()
