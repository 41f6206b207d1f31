"""Types that may not be read, that go, and that come back: a state, a slow retry, and a correct store."""

import json
import os
import tempfile
import unittest

from harness import ROOT, Daemon, Proxy, cluster, config_map, needs_cluster, wait_until, write_config

NAMESPACE = "types"
READER = os.path.join(ROOT, "tests", "cluster", "manifests", "reader.yaml")
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.types.kinformer.dev"},
    "spec": {"group": "types.kinformer.dev", "scope": "Namespaced",
             "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
             "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                 "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}
WIDGETS = f"/apis/types.kinformer.dev/v1/namespaces/{NAMESPACE}/widgets"
RESOURCE = "widgets.types.kinformer.dev"


def setUpModule():
    cluster().make_namespace(NAMESPACE)


def define():
    cluster().kubectl("apply", "-f", "-", stdin=json.dumps(DEFINITION))
    cluster().kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/" + RESOURCE)
    wait_until(is_served, "the new type is served")


def is_served():
    try:
        cluster().versions(WIDGETS)
    except AssertionError:
        return False
    return True


def withdraw():
    cluster().kubectl("delete", "crd", RESOURCE, "--timeout=60s", "--ignore-not-found")


def put_widget(name):
    cluster().kubectl("create", "-f", "-", stdin=json.dumps({
        "apiVersion": "types.kinformer.dev/v1", "kind": "Widget",
        "metadata": {"name": name, "namespace": NAMESPACE}}))


class Types(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def config(self, resource, **more):
        return write_config(self.folder, resource, namespaces=[NAMESPACE], backoffBase="200ms", backoffMax="2s", **more)

    @needs_cluster("rights that change")
    def test_rights_that_are_revoked_in_mid_watch_and_granted_again(self):
        self.addCleanup(cluster().kubectl, "delete", "configmaps", "--all", "-n", NAMESPACE)
        cluster().kubectl("create", "-f", "-", stdin=config_map("before", NAMESPACE))
        with Daemon(kubeconfig=cluster().kubeconfig("token"),
                    config=self.config("configmaps", watchTimeout="2s")) as daemon:
            daemon.wait_synced()
            cluster().kubectl("delete", "-f", READER)
            try:
                # The open watch goes on, by design of the server; the one that follows it is refused.
                daemon.wait_logged("is forbidden")
                cluster().kubectl("create", "-f", "-", stdin=config_map("meanwhile", NAMESPACE))
            finally:
                cluster().kubectl("apply", "-f", READER)
            daemon.wait_types(NAMESPACE + "/meanwhile", "ADDED")
            daemon.wait_logged("watching again")
            self.assertEqual([event["type"] for event in daemon.events_of(NAMESPACE + "/before")], ["ADDED"])
            self.assertEqual(daemon.count_log("listed resource"), 1)
            daemon.stop()

    def test_a_type_that_goes_and_comes_back(self):
        self.addCleanup(withdraw)
        define()
        for name in ("one", "two"):
            put_widget(name)
        with Daemon(config=self.config(RESOURCE)) as daemon:
            daemon.wait_synced()
            withdraw()
            for name in ("one", "two"):
                daemon.wait_types(f"{NAMESPACE}/{name}", "ADDED", "DELETED")
            daemon.wait_logged("answered 404")
            self.assertEqual(daemon.versions(RESOURCE), {})
            define()
            put_widget("two")
            daemon.wait_types(NAMESPACE + "/two", "ADDED", "DELETED", "ADDED")
            put_widget("three")  # what the watch brings ends the trouble: a list is not enough
            daemon.wait_logged("watching again")
            daemon.wait_equal(lambda: cluster().versions(WIDGETS), RESOURCE)
            # Absent, then "(re)initializing", each with growing waits.
            self.assertLessEqual(daemon.count_loud(), 40)
            daemon.stop()

    def test_what_went_with_a_type_unseen_is_told_when_it_is_back(self):
        self.addCleanup(withdraw)
        define()
        for name in ("one", "two"):
            put_widget(name)
        with Proxy() as proxy, Daemon(kubeconfig=proxy.kubeconfig(self.folder),
                                      config=self.config(RESOURCE)) as daemon:
            daemon.wait_synced()
            proxy.stall.set()
            withdraw()
            proxy.drop()
            daemon.wait_logged("answered 404")
            define()
            put_widget("two")
            daemon.wait_types(NAMESPACE + "/one", "ADDED", "DELETED")
            daemon.wait_types(NAMESPACE + "/two", "ADDED", "DELETED", "ADDED")
            self.assertTrue(daemon.events_of(NAMESPACE + "/one")[-1]["finalStateUnknown"])
            daemon.wait_equal(lambda: cluster().versions(WIDGETS), RESOURCE)
            daemon.stop()


if __name__ == "__main__":
    unittest.main()
