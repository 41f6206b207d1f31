"""An object in etcd that the server cannot decode stops its watch cache: lists of etcd make up for the watches."""

import base64
import json
import os
import tempfile
import time
import unittest
import urllib.request

from harness import ROOT, Daemon, cluster, needs_cluster, wait_until

RESOURCE = "cogs.frozen.kinformer.dev"
TARGET = "/apis/frozen.kinformer.dev/v1/cogs"
BROKEN = "/registry/frozen.kinformer.dev/cogs/frozen-b/broken"
# The server closes watches and refuses new ones about half a minute after its cache has stopped.
PATIENCE = 180

CONFIG = f"""
resources:
  - resource: {RESOURCE}
    namespaces: [frozen-a]
    silentAfter: 10s
"""


def etcd(call, **arguments):
    body = {name: base64.b64encode(value.encode()).decode() for name, value in arguments.items()}
    request = urllib.request.Request(f"{cluster().env['KINF_ETCD']}/v3/kv/{call}", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def definition():
    with open(os.path.join(ROOT, "tests", "integration", "gadgets.yaml"), encoding="utf-8") as file:
        return (file.read().replace("gadget", "cog").replace("Gadget", "Cog")
                .replace("test.kinformer.dev", "frozen.kinformer.dev"))


def can_make(name):
    try:
        cluster().kubectl("create", "-f", "-", stdin=f"""
apiVersion: frozen.kinformer.dev/v1
kind: Cog
metadata: {{name: {name}, namespace: frozen-a}}
""")
    except AssertionError:
        return False
    return True


@needs_cluster("etcd")
class Frozen(unittest.TestCase):
    n_made = 0

    def setUp(self):
        cluster().kubectl("apply", "-f", "-", stdin=definition())
        cluster().kubectl("wait", "--for=condition=Established", f"crd/{RESOURCE}", "--timeout=30s")
        cluster().make_namespace("frozen-a")
        wait_until(lambda: can_make("before"), "an object can be made")

    def tearDown(self):
        etcd("deleterange", key=BROKEN)

    def delivers_again(self, daemon):
        """Makes an object now and then: a bookmark would take a minute."""
        self.n_made += 1
        can_make(f"healed-{self.n_made}")
        time.sleep(1)
        return "watches deliver again resource=cogs namespace=frozen-a" in daemon.log_text()

    def test_a_broken_object_elsewhere_does_not_make_the_store_stale_for_good(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kinformerd.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(CONFIG)
            with Daemon("--config", path, resource=()) as daemon:
                daemon.wait_synced()
                etcd("put", key=BROKEN, value="this is no object")
                wait_until(lambda: can_make("while-frozen"), "an object can be made")
                wait_until(lambda: daemon.check() or daemon.events_of("frozen-a/while-frozen"), "it is listed", PATIENCE)
                self.assertIn("watches are not to be relied on resource=cogs namespace=frozen-a", daemon.log_text())
                etcd("deleterange", key=BROKEN)
                wait_until(lambda: daemon.check() or self.delivers_again(daemon), "a watch delivers again", PATIENCE)
                daemon.wait_equal(lambda: cluster().versions(TARGET), RESOURCE)
                daemon.stop()


if __name__ == "__main__":
    unittest.main()
