"""Leader election between processes: whatever happens to the one that leads, never two act."""

import collections
import json
import os
import signal
import struct
import subprocess
import tempfile
import time
import unittest

from harness import PATIENCE, ROOT, Proxy, build_probe, cluster, needs_cluster, read_notes, wait_until

NAMESPACE = "elections"
FOLDER = None
PROGRAM = None

LEASE_MS = 4000
RENEW_MS = 3000
RETRY_MS = 300
# From the last renewal: it is seen within a retry, waited out, and acted upon by a process that has to be run.
TAKE_OVER_MS = LEASE_MS + 2.2 * RETRY_MS + 1000

Act = collections.namedtuple("Act", "identity term first_ms last_ms")


def setUpModule():
    global FOLDER, PROGRAM
    FOLDER = tempfile.TemporaryDirectory(prefix="kinformer-elector-")
    PROGRAM = build_probe(FOLDER.name, "elector_probe.c", ["cc", "-std=c11", "-D_GNU_SOURCE"])
    cluster().make_namespace(NAMESPACE)


def tearDownModule():
    FOLDER.cleanup()


def now_ms():
    return time.clock_gettime(time.CLOCK_BOOTTIME) * 1000


class Election(unittest.TestCase):
    def setUp(self):
        self.name = self.id().rpartition(".")[2].replace("_", "-")
        self.path = os.path.join(FOLDER.name, self.name)
        self.namespace = NAMESPACE
        self.candidates = {}
        self.fence = []

    def tearDown(self):
        for process in self.candidates.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()

    def start(self, *identities, kubeconfig=None, env=None):
        for identity in identities:
            self.candidates[identity] = subprocess.Popen(
                [PROGRAM, identity, self.namespace, self.name, self.path, str(LEASE_MS), str(RENEW_MS), str(RETRY_MS),
                 *self.fence],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "KUBECONFIG": kubeconfig or cluster().kubeconfig(), **(env or {})})

    def stop(self, identity):
        self.candidates[identity].send_signal(signal.SIGTERM)
        self.assertEqual(self.candidates[identity].wait(PATIENCE), 0)

    def signal_leader(self, number):
        """Returns who it was, and when."""
        leader = self.acts()[-1].identity
        self.candidates[leader].send_signal(number)
        return leader, now_ms()

    def acts(self):
        """Who acted in which term, from when until when. The processes' lines are checked each time they are read."""
        spans = {}
        for identity, term, at in read_notes(self.path, "act"):
            spans.setdefault((int(term), identity), []).append(int(at))
        acts = [Act(identity, term, min(times), max(times)) for (term, identity), times in sorted(spans.items())]
        for before, after in zip(acts, acts[1:]):
            self.assertLess(before.term, after.term, "two act in one term")
            self.assertLess(before.last_ms, after.first_ms, f"two act at once: {before} {after}")
        return acts

    def wait_acting(self, by=None, behind=-1):
        """Until somebody, or who is named, acts in a term behind that; returns the act."""
        def found():
            return [act for act in self.acts() if act.term > behind and by in (None, act.identity)]
        return wait_until(found, f"{by or 'somebody'} acts")[-1]

    def wait_seen(self, leader):
        """Until all know who leads."""
        def seen():
            return {line[0]: line[1] for line in read_notes(self.path, "leader")} == {identity: leader for identity in self.candidates}
        wait_until(seen, f"all know that {leader} leads")

    def lease(self):
        return json.loads(cluster().kubectl("get", "lease", "-n", self.namespace, self.name, "-o", "json"))

    def assert_quiet(self, identity, seconds):
        """It does not act meanwhile."""
        before = [act for act in self.acts() if act.identity == identity]
        time.sleep(seconds)
        self.assertEqual([act for act in self.acts() if act.identity == identity], before)


class Leaders(Election):
    def test_one_that_stops_hands_over(self):
        self.start("a", "b")
        first = self.wait_acting()
        other = "b" if first.identity == "a" else "a"
        time.sleep(1)
        self.assertEqual(len(self.acts()), 1)
        spec = self.lease()["spec"]
        self.assertEqual((spec["holderIdentity"], spec["leaseDurationSeconds"]), (first.identity, LEASE_MS // 1000))
        self.stop(first.identity)
        second = self.wait_acting(other)
        self.assertLess(second.first_ms - self.acts()[0].last_ms, 2.2 * RETRY_MS + 1000)
        self.stop(other)
        spec = self.lease()["spec"]
        self.assertEqual((spec["holderIdentity"], spec["leaseDurationSeconds"]), ("", 1))
        self.assertEqual([line[0] for line in read_notes(self.path, "started")], [line[0] for line in read_notes(self.path, "stopped")])

    def test_one_that_is_killed_is_followed(self):
        self.start("a", "b", "c")
        self.wait_acting()
        for n_left in (2, 1):
            killed, at_ms = self.signal_leader(signal.SIGKILL)
            [before] = [act for act in self.acts() if act.identity == killed]
            after = self.wait_acting(behind=before.term)
            self.assertLess(after.first_ms - at_ms, TAKE_OVER_MS)
            self.assertEqual(sum(process.poll() is None for process in self.candidates.values()), n_left)

    def test_one_that_is_halted_acts_no_more_when_it_goes_on(self):
        self.start("a", "b", "c")
        first = self.wait_acting()
        halted, at_ms = self.signal_leader(signal.SIGSTOP)
        after = self.wait_acting(behind=first.term)
        self.assertLess(after.first_ms - at_ms, TAKE_OVER_MS)
        self.candidates[halted].send_signal(signal.SIGCONT)
        self.assert_quiet(halted, 2)
        wait_until(lambda: [line for line in read_notes(self.path, "stopped") if line[0] == halted], "it knows")
        # Also for less than a lease, again and again.
        for _ in range(5):
            term = self.acts()[-1].term
            halted, _ = self.signal_leader(signal.SIGSTOP)
            time.sleep(RENEW_MS / 1000 + 0.3)
            self.candidates[halted].send_signal(signal.SIGCONT)
            self.wait_acting(behind=term)

    def test_the_same_name_twice_leads_once(self):
        self.start("a")
        self.wait_acting("a")
        first = self.candidates["a"]
        self.start("a")
        time.sleep(2)
        self.assertEqual(len(self.acts()), 1)
        self.stop("a")
        self.assertEqual(self.lease()["spec"]["holderIdentity"], "a")
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(PATIENCE), 0)


class Fences(Election):
    def test_no_write_of_an_earlier_term_follows_one_of_a_later(self):
        cluster().kubectl("create", "configmap", "-n", self.namespace, "fence")
        self.fence = ["fence"]
        self.start("a", "b", "c")
        # Halted in the midst of whatever it does, and let go when another leads.
        for n_leaders in range(1, 5):
            wait_until(lambda: len({term for term, _ in self.writes()}) >= n_leaders, "the leader writes")
            term = self.acts()[-1].term
            halted, _ = self.signal_leader(signal.SIGSTOP)
            self.wait_acting(behind=term)
            self.candidates[halted].send_signal(signal.SIGCONT)
        last = self.acts()[-1].term
        wait_until(lambda: self.writes()[-1][0] == last, "the last leader writes")
        stored = json.loads(cluster().kubectl("get", "configmap", "-n", self.namespace, "fence", "-o", "json"))
        self.assertGreaterEqual(int(stored["data"]["term"]), last)

    def writes(self):
        """Terms and identities in the order of the server. It is checked each time that they are read."""
        lines = sorted((int(version), int(term), identity) for identity, term, version in read_notes(self.path, "wrote"))
        writes = [(term, identity) for _, term, identity in lines]
        self.assertEqual([term for term, _ in writes], sorted(term for term, _ in writes))
        self.assertEqual(len(set(writes)), len({term for term, _ in writes}), "two have written in one term")
        return writes


@needs_cluster("rights")
class Rights(Election):
    def test_get_create_and_update_are_enough(self):
        kubectl = cluster().kubectl
        kubectl("create", "role", "-n", NAMESPACE, "elector", "--verb=get,create,update",
                "--resource=leases.coordination.k8s.io")
        kubectl("create", "rolebinding", "-n", NAMESPACE, "elector", "--role=elector", "--user=user")
        self.start("a", kubeconfig=cluster().kubeconfig("user"))
        self.wait_acting("a")
        kubectl("delete", "rolebinding", "-n", NAMESPACE, "elector")
        wait_until(lambda: read_notes(self.path, "stopped"), "it leads no more")
        self.assert_quiet("a", 1)


class Clocks(Election):
    def test_a_wall_clock_that_jumps_is_of_no_concern(self):
        shim = os.path.join(FOLDER.name, "wall_clock.so")
        subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
                        os.path.join(ROOT, "tests", "integration", "wall_clock.c"), "-o", shim], check=True)
        clocks = {}
        for identity in "ab":
            clocks[identity] = os.path.join(FOLDER.name, "clock-" + identity)
            self.set_clock(clocks[identity], 0)
            self.start(identity, env={"LD_PRELOAD": shim, "WALL_CLOCK_FILE": clocks[identity],
                                      "ASAN_OPTIONS": "verify_asan_link_order=0"})
        first = self.wait_acting()
        times = set()
        for days in (1, -1, 3000, -3000, 0):
            for identity, sign in (("a", 1), ("b", -1)):
                self.set_clock(clocks[identity], sign * days * 86400)
            time.sleep(LEASE_MS / 2000)
            times.add(self.lease()["spec"]["renewTime"][:4])
        self.assertGreater(len(times), 2, "the shim does not work")
        self.assertEqual([act[:2] for act in self.acts()], [first[:2]])
        killed, at_ms = self.signal_leader(signal.SIGKILL)
        after = self.wait_acting(behind=first.term)
        self.assertLess(after.first_ms - at_ms, TAKE_OVER_MS)
        self.assertNotEqual(after.identity, killed)

    def set_clock(self, path, seconds):
        with open(path, "r+b" if os.path.exists(path) else "w+b") as file:
            file.write(struct.pack("=q", seconds))


class Networks(Election):
    def test_one_that_is_cut_off_ends_before_the_next_begins(self):
        with Proxy() as proxy:
            self.start("a", kubeconfig=proxy.kubeconfig(FOLDER.name, name=self.name))
            first = self.wait_acting("a")
            self.start("b")
            wait_until(lambda: ["b", "a"] in [line[:2] for line in read_notes(self.path, "leader")], "b has seen a")
            at_ms = now_ms()
            proxy.hold.set()
            proxy.stall.set()
            second = self.wait_acting("b")
            self.assertLess(second.first_ms - at_ms, TAKE_OVER_MS)
            self.assertLess(self.acts()[0].last_ms - at_ms, RENEW_MS + 100)
            wait_until(lambda: [line for line in read_notes(self.path, "stopped") if line[0] == "a"], "a knows")
            # What was on its way arrives now.
            proxy.hold.clear()
            proxy.stall.clear()
            self.assert_quiet("a", 2)
            self.stop("b")
            self.assertGreater(self.wait_acting("a", behind=second.term).term, first.term)

    def test_one_that_is_cut_off_stops_in_time(self):
        with Proxy() as proxy:
            self.start("a", kubeconfig=proxy.kubeconfig(FOLDER.name, name=self.name))
            self.wait_acting("a")
            proxy.hold.set()
            proxy.stall.set()
            time.sleep(2 * RETRY_MS / 1000)
            begin = time.monotonic()
            self.stop("a")
            self.assertLess(time.monotonic() - begin, 2 + 1.5)


class Hands(Election):
    def test_a_lease_that_is_edited_or_deleted_by_hand_has_one_leader(self):
        kubectl = cluster().kubectl
        self.start("a", "b")
        first = self.wait_acting()
        self.wait_seen(first.identity)
        kubectl("delete", "lease", "-n", NAMESPACE, self.name)
        wait_until(lambda: cluster().try_kubectl("get", "lease", "-n", NAMESPACE, self.name), "it is made again")
        self.assertEqual([act[:2] for act in self.acts()], [first[:2]])

        kubectl("patch", "lease", "-n", NAMESPACE, self.name, "--type=merge", "--patch",
                '{"metadata": {"labels": {"a": "b"}}, "spec": {"holderIdentity": "nobody", "leaseDurationSeconds": 2}}')
        self.wait_acting(behind=first.term)
        lease = self.lease()
        self.assertEqual(lease["metadata"]["labels"], {"a": "b"})
        self.assertEqual(lease["spec"]["leaseDurationSeconds"], LEASE_MS // 1000)

        last = self.acts()[-1]
        self.wait_seen(last.identity)
        kubectl("patch", "lease", "-n", NAMESPACE, self.name, "--type=merge", "--patch", '{"spec": null}')
        wait_until(lambda: "holderIdentity" in self.lease().get("spec", {}), "it is taken again")
        self.wait_acting(behind=last.term)
        self.acts()

    def test_a_namespace_that_goes_away_ends_the_term(self):
        self.namespace = "elections-gone"
        cluster().make_namespace(self.namespace)
        self.start("a")
        self.wait_acting("a")
        cluster().kubectl("delete", "namespace", self.namespace, "--wait=false")
        cluster().kubectl("delete", "lease", "-n", self.namespace, self.name, "--ignore-not-found")
        wait_until(lambda: read_notes(self.path, "stopped"), "it leads no more")
        self.assert_quiet("a", 1)
        self.stop("a")


if __name__ == "__main__":
    unittest.main()
