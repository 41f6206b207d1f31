"""A custom resource whose definition goes away while nobody watches: its objects are deleted, and it comes back."""

import json
import os
import signal
import tempfile
import unittest

from harness import ROOT, Daemon, Proxy, cluster, wait_until, write_config
from test_serve import Served, Watch, ask, body_of

RESOURCE = "sprockets.withdrawn.kinformer.dev"


TARGET = "/apis/withdrawn.kinformer.dev/{}/namespaces/default/sprockets"


def brief_config(test, *resources):
    """The path of a configuration that is quick to try again."""
    folder = tempfile.TemporaryDirectory()
    test.addCleanup(folder.cleanup)
    return write_config(folder.name, *resources, backoffMax="1s")


def definition():
    with open(os.path.join(ROOT, "tests", "integration", "gadgets.yaml"), encoding="utf-8") as file:
        return (file.read().replace("gadget", "sprocket").replace("Gadget", "Sprocket")
                .replace("test.kinformer.dev", "withdrawn.kinformer.dev"))


def define(version="v1"):
    cluster().kubectl("apply", "-f", "-", stdin=definition().replace("name: v1", "name: " + version))
    cluster().kubectl("wait", "--for=condition=Established", f"crd/{RESOURCE}", "--timeout=30s")


def make(name, version="v1"):
    cluster().kubectl("create", "-f", "-", stdin=f"""
apiVersion: withdrawn.kinformer.dev/{version}
kind: Sprocket
metadata: {{name: {name}, namespace: default}}
""")


def can_make(name, version="v1"):
    try:
        make(name, version)
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


def names_of(served, version="v1"):
    """None: it is not served."""
    status, _, body = ask(served, TARGET.format(version))
    return [item["metadata"]["name"] for item in json.loads(body)["items"]] if status == 200 else None


class Reload(unittest.TestCase):
    def is_gone_at_a_reload(self, served):
        """Which may believe what it asked the server some seconds before."""
        n_reloads = served.daemon.count_log("configuration read again")
        served.daemon.process.send_signal(signal.SIGHUP)
        served.daemon.wait_logged("configuration read again", n_reloads + 1)
        return names_of(served) is None

    def test_what_was_away_at_a_reload_is_served_when_it_is_back(self):
        define()
        wait_until(lambda: can_make("a"), "an object can be made")
        with Served("--config", brief_config(self, RESOURCE), resource=()) as served:
            self.assertEqual(names_of(served), ["a"])
            cluster().kubectl("delete", "crd", RESOURCE, "--timeout=30s")
            served.daemon.wait_logged("the server has no such resource any more")
            wait_until(lambda: self.is_gone_at_a_reload(served), "it is gone")
            define()
            self.addCleanup(cluster().kubectl, "delete", "crd", RESOURCE, "--timeout=30s")
            wait_until(lambda: can_make("b"), "an object can be made")
            wait_until(lambda: names_of(served) == ["b"], "it is served again")
            served.daemon.stop()


class AnotherVersion(unittest.TestCase):
    """What a name means is asked again when the server says 404: the definition comes back as v2."""

    def setUp(self):
        define()
        wait_until(lambda: can_make("a"), "an object can be made")
        self.addCleanup(cluster().kubectl, "delete", "crd", RESOURCE, "--timeout=30s")

    def come_back(self, daemon):
        """Another watch will tell its first list, once."""
        daemon.wait_synced()
        with daemon.lock:
            daemon.synced.remove(RESOURCE)
        cluster().kubectl("delete", "crd", RESOURCE, "--timeout=30s")
        define("v2")
        wait_until(lambda: can_make("b", "v2"), "an object can be made")

    def test_it_is_watched_and_its_history_is_told(self):
        with Daemon(config=brief_config(self, RESOURCE, "pods"), resource=()) as daemon:
            daemon.wait_synced(2)
            self.come_back(daemon)
            daemon.wait_types("default/a", "ADDED", "DELETED", patience=120)
            wait_until(lambda: daemon.check() or daemon.events_of("default/b"), "the new version is listed", 120)
            self.assertEqual(daemon.count_loud("back in another version resource=" + RESOURCE), 1)
            wait_until(lambda: daemon.check() or RESOURCE in daemon.synced, "SYNCED")
            make("c", "v2")
            daemon.wait_types("default/c", "ADDED")
            self.assertEqual(sorted(daemon.versions(RESOURCE)), ["default/b", "default/c"])
            daemon.stop()

    def test_it_is_served(self):
        with Served("--config", brief_config(self, RESOURCE), resource=()) as served:
            self.assertEqual(names_of(served), ["a"])
            self.come_back(served.daemon)
            wait_until(lambda: names_of(served, "v2") == ["b"], "the new version is served", 120)
            self.assertEqual(ask(served, TARGET.format("v1"))[0], 404)
            groups = body_of(served, "/apis/withdrawn.kinformer.dev/v2")["resources"]
            self.assertEqual([resource["name"] for resource in groups], ["sprockets"])
            served.daemon.stop()


if __name__ == "__main__":
    unittest.main()
