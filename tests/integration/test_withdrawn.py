"""A custom resource whose definition goes away while nobody watches: its objects are deleted, and it comes back."""

import os
import tempfile
import unittest

from harness import ROOT, Daemon, Proxy, cluster, wait_until
from test_serve import Served, Watch, body_of

RESOURCE = "sprockets.withdrawn.kinformer.dev"


def definition():
    with open(os.path.join(ROOT, "tests", "integration", "gadgets.yaml"), encoding="utf-8") as file:
        return (file.read().replace("gadget", "sprocket").replace("Gadget", "Sprocket")
                .replace("test.kinformer.dev", "withdrawn.kinformer.dev"))


def define():
    cluster().kubectl("apply", "-f", "-", stdin=definition())
    cluster().kubectl("wait", "--for=condition=Established", f"crd/{RESOURCE}", "--timeout=30s")


def make(name):
    cluster().kubectl("create", "-f", "-", stdin=f"""
apiVersion: withdrawn.kinformer.dev/v1
kind: Sprocket
metadata: {{name: {name}, namespace: default}}
""")


def can_make(name):
    try:
        make(name)
    except AssertionError:
        return False  # the definition is established, and its endpoints are not there yet
    return True


def withdraw_unseen(proxy):
    """What the server tells of the deletions is held back, and lost with the connection."""
    proxy.stall.set()
    cluster().kubectl("delete", "crd", RESOURCE, "--timeout=30s")
    proxy.drop()


class Withdrawn(unittest.TestCase):
    def test_a_definition_that_goes_unseen_empties_the_store_and_comes_back(self):
        define()
        wait_until(lambda: can_make("a"), "an object can be made")
        make("b")
        with tempfile.TemporaryDirectory() as folder, Proxy() as proxy:
            with Daemon(kubeconfig=proxy.kubeconfig(folder), resource=(RESOURCE,)) as daemon:
                daemon.wait_synced()
                self.assertEqual(len(daemon.state), 2)
                withdraw_unseen(proxy)
                for name in ("default/a", "default/b"):
                    daemon.wait_types(name, "ADDED", "DELETED")
                    self.assertTrue(daemon.events_of(name)[-1]["finalStateUnknown"])
                define()
                wait_until(lambda: can_make("c"), "an object can be made")
                wait_until(lambda: daemon.check() or daemon.events_of("default/c"), "it is listed again", 120)
                self.assertEqual(len(daemon.state), 1)
                daemon.stop()
        cluster().kubectl("delete", "crd", RESOURCE, "--timeout=30s")

    def test_watches_are_told_of_objects_that_went_unseen(self):
        define()
        wait_until(lambda: can_make("a"), "an object can be made")
        make("b")
        target = "/apis/withdrawn.kinformer.dev/v1/namespaces/default/sprockets"
        with tempfile.TemporaryDirectory() as folder, Proxy() as proxy:
            with Served(resource=(RESOURCE,), kubeconfig=proxy.kubeconfig(folder)) as served:
                version = body_of(served, target)["metadata"]["resourceVersion"]
                with Watch(served, f"{target}?watch=1&resourceVersion={version}") as stays:
                    withdraw_unseen(proxy)
                    told = [stays.next(), stays.next()]
                # Whoever was away has to hear of it, too.
                with Watch(served, f"{target}?watch=1&resourceVersion={version}") as comes_back:
                    self.assertEqual([comes_back.next(), comes_back.next()], told)
                self.assertEqual([(event["type"], event["object"]["metadata"]["name"]) for event in told],
                                 [("DELETED", "a"), ("DELETED", "b")])
                served.daemon.stop()


if __name__ == "__main__":
    unittest.main()
