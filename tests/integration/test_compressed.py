"""Objects that are held compressed: whoever asks gets the same bytes, and the memory is a fraction."""

import json
import os
import tempfile
import unittest

from harness import cluster, many_pods, measure, run_daemon, wait_until, write_config
from test_serve import Direct, Served, Watch, ask, body_of
from test_warm import Warm
from test_watchlist_large import forget_peak, kilobytes

PODS = "/api/v1/namespaces/many-1/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


class Compressed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        many_pods()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        config = write_config(folder.name, "pods", store="compressed", indices=[{"name": "byPhase", "path": "status.phase"}])
        cls.served = cls.enterClassContext(Served("--config", config, resource=()))
        cls.direct = Direct()
        pods = body_of(cls.direct, PODS)
        cls.names = [pod["metadata"]["name"] for pod in pods["items"]]
        # The list's own version may be one that only a bookmark tells, a minute later.
        cls.version = max(int(pod["metadata"]["resourceVersion"]) for pod in pods["items"])
        cls.served.wait_for(PODS, cls.version)

    def expect_same(self, target, accept="application/json"):
        """The API server's bytes; a list's version is the answer's own."""
        bodies = []
        for where in (self.direct, self.served):
            status, _, body = ask(where, target, headers={"Accept": accept})
            self.assertEqual(status, 200, body[:300])
            answer = json.loads(body)
            if answer["kind"].endswith("List"):
                body = body.replace(answer["metadata"]["resourceVersion"].encode(), b"", 1)
            bodies.append(body)
        self.assertEqual(bodies[0], bodies[1], target)

    def test_lists_and_gets_are_the_servers_bytes(self):
        self.expect_same(PODS)
        self.expect_same(PODS + "?labelSelector=app%20in%20(billing,search)")
        self.expect_same(PODS + "?fieldSelector=status.phase!=Failed")
        self.expect_same(PODS, METADATA_LIST)
        for name in self.names[:5] + self.names[-5:]:
            self.expect_same(f"{PODS}/{name}")
            self.expect_same(f"{PODS}/{name}", METADATA)

    def test_tables_have_the_servers_rows(self):
        rows = [[row["object"]["metadata"]["name"] for row in body_of(where, PODS, Accept=TABLE)["rows"]]
                for where in (self.direct, self.served)]
        self.assertEqual(rows[0], rows[1])
        self.assertEqual(rows[0], self.names)

    def test_a_watch_tells_what_changes(self):
        pod = f"{PODS}/{self.names[-1]}"
        version = body_of(self.served, PODS)["metadata"]["resourceVersion"]
        with Watch(self.served, f"{PODS}?watch=1&resourceVersion={version}&labelSelector=compressed=yes") as watch:
            cluster().kubectl("label", "pod", "-n", "many-1", self.names[-1], "compressed=yes")
            self.addCleanup(cluster().kubectl, "label", "pod", "-n", "many-1", self.names[-1], "compressed-")
            event = watch.next()
        self.assertEqual(event["type"], "ADDED")
        self.assertEqual(event["object"], body_of(self.direct, pod))

    def test_memory_is_a_fraction_of_it(self):
        plain = int(measure("--resource", "pods")[0]["stored_bytes"])
        [line] = measure("--resource", "pods", "--store", "compressed")
        self.assertLess(int(line["stored_bytes"]) * 5, plain)
        self.assertEqual(line["checksum"], cluster().checksum())
        self.assertLess(int(line["peak_rss_kb"]), int(line["rss_kb"]) * 1.2)  # they are compressed as they come
        print("  " + " ".join(f"{name}={value}" for name, value in line.items()))

    def test_a_list_is_inflated_piece_by_piece(self):
        with tempfile.TemporaryDirectory() as folder, Served("--config", write_config(folder, "pods", store="compressed"),
                                                             resource=(), mode="release") as served:
            served.wait_for(PODS, self.version)
            body_of(served, PODS)
            settled = kilobytes(served.daemon.process, "VmRSS")
            forget_peak(served.daemon.process)
            status, _, body = ask(served, "/api/v1/pods")
            self.assertEqual(status, 200)
            peak = kilobytes(served.daemon.process, "VmHWM")
        print(f"  settled_kb={settled} peak_kb={peak} list_kb={len(body) // 1024}")
        self.assertGreater(len(body), len(self.names) * 10000)
        self.assertLess((peak - settled) * 1024 * 5, len(body))

    def run_with_state(self, folder, store):
        """Returns how often it was loaded from its file, the names and labels it serves, and the bytes of the store."""
        path = os.path.join(folder, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"listen": ["127.0.0.1:0"], "stateDir": os.path.join(folder, "state"),
                       "resources": [{"resource": "pods", "store": store}]}, file)
        with Warm(path) as warm:
            wait_until(lambda: warm.readyz()[0] == 200, "ready")
            pods = [(pod["metadata"]["name"], pod["metadata"].get("labels")) for pod in body_of(warm, PODS)["items"]]
            state = json.loads(ask(warm, "/debug/state")[2])["informers"][0]["storeBytes"]
            warm.daemon.stop()
            return warm.daemon.count_log("loaded resource=pods"), pods, state

    def test_a_start_goes_on_with_them_as_they_were_held(self):
        with tempfile.TemporaryDirectory() as folder:
            first, again, plain = [self.run_with_state(folder, store) for store in ("compressed", "compressed", "plain")]
        self.assertEqual([first[0], again[0], plain[0]], [0, 1, 0])  # another way to hold them is another configuration
        self.assertEqual(first[1], again[1])
        self.assertEqual(first[1], plain[1])
        self.assertLess(abs(again[2] - first[2]) * 100, first[2])
        self.assertLess(first[2] * 5, plain[2])

    def test_what_it_can_be_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            code, _, errors = run_daemon("--config", write_config(folder, "pods", store="zipped"), "--check-config")
        self.assertEqual(code, 2)
        self.assertIn("store is one of plain, compressed, not 'zipped'", errors)
        for args, why in ((("--resource", "pods", "--store", "zipped"), "--store is one of plain, compressed, not 'zipped'"),
                          (("--store", "compressed"), "--store go with --resource"),
                          (("--config", "/dev/null", "--store", "plain"), "--config excludes")):
            code, _, errors = run_daemon(*args, "--check-config")
            self.assertEqual(code, 2)
            self.assertIn(why, errors)
        code, _, errors = run_daemon("--resource", "pods", "--store", "plain", "--check-config")
        self.assertEqual(code, 0, errors)
