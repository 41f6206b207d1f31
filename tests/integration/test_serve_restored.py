"""A cluster that is restored from a backup, as clients of kinformerd see it: no version is of two states to them."""

import tempfile
import unittest

from harness import cluster, config_map, wait_until, write_config
from test_serve import Direct, Served, Watch, ask, body_of

NAMESPACE = "restored"
TARGET = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


def put(name, data):
    cluster().kubectl("apply", "-f", "-", stdin=config_map(name, NAMESPACE, data))


class ServeRestoredTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cluster().make_namespace(NAMESPACE)
        for name in ("changed", "deleted", "stays"):
            put(name, "0")

    def assert_expired(self, watch):
        with watch:
            last = watch.until(lambda event: event["type"] == "ERROR")[-1]
        self.assertEqual((last["type"], last["object"]["reason"]), ("ERROR", "Expired"))

    def test_nobody_goes_on_from_a_version_that_was_undone(self):
        cluster().run_script("checkpoint")
        # A restored server accepts a watch from its future and is silent. Half of that is how long the daemon waits
        # for an answer, and a list from the future is refused after three seconds.
        config = write_config(self.enterContext(tempfile.TemporaryDirectory()), "configmaps", silentAfter="8s")
        with Served("--config", config, resource=()) as served:
            for i in range(8):
                put("changed", str(i))
            cluster().kubectl("delete", "cm", "-n", NAMESPACE, "deleted")
            put("created", "1")
            version = int(body_of(Direct(), TARGET)["metadata"]["resourceVersion"])
            served.wait_for(TARGET, version)
            state = body_of(served, TARGET)
            page = body_of(served, TARGET + "?limit=1")["metadata"]["continue"]
            open_watch = Watch(served, f"{TARGET}?watch=1&resourceVersion={version}")
            cluster().run_script("rollback")
            put("stays", "again")
            wait_until(lambda: body_of(served, TARGET)["items"] == body_of(Direct(), TARGET)["items"],
                       "the restored state")
            self.assertNotEqual(body_of(served, TARGET)["items"], state["items"])
            self.assertLess(int(body_of(served, TARGET)["metadata"]["resourceVersion"]), version)
            self.assert_expired(open_watch)
            self.assert_expired(Watch(served, f"{TARGET}?watch=1&resourceVersion={version}"))
            self.assertEqual(ask(served, f"{TARGET}?limit=1&continue={page}")[0], 410)
            self.assertEqual(ask(served, f"{TARGET}?resourceVersion={version}")[0], 504)
            served.daemon.stop()


if __name__ == "__main__":
    unittest.main()
