"""The first sync: what is in the store is what the server has, whichever way it was asked."""

import os
import tempfile
import unittest

from harness import N_MANY_NAMESPACES, N_MANY_PODS, ROOT, cluster, many_pods, measure, needs_cluster, run_daemon


class Sync(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.n_pods = many_pods()

    def test_checksum_of_10000_pods_equals_kubectl(self):
        [line] = measure("--resource", "pods")
        self.assertEqual(int(line["objects"]), self.n_pods)
        self.assertEqual(line["checksum"], cluster().checksum())
        self.assertGreater(int(line["stored_bytes"]), N_MANY_PODS * 10000)
        print("  " + " ".join(f"{name}={value}" for name, value in line.items()))

    def test_pages_give_the_same_store_as_one_list(self):
        [whole] = measure("--resource", "pods")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "config.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write("resources:\n- resource: pods\n  pageSize: 700\n  gzip: true\n")
            [paged] = measure("--config", path)
        self.assertEqual((paged["objects"], paged["checksum"]), (whole["objects"], whole["checksum"]))

    def test_dropped_parts_are_not_stored(self):
        [whole] = measure("--resource", "pods")
        [dropped] = measure("--resource", "pods", "--drop", "metadata.managedFields")
        [kept] = measure("--resource", "pods", "--keep", "spec.nodeName", "--keep", "status.phase")
        self.assertEqual(dropped["checksum"], whole["checksum"])
        self.assertEqual(kept["checksum"], whole["checksum"])
        self.assertLess(int(dropped["stored_bytes"]), int(whole["stored_bytes"]) * 0.85)
        self.assertLess(int(kept["stored_bytes"]), int(whole["stored_bytes"]) * 0.1)
        # What the daemon itself takes is no part of it: on the simulated server that is a third of the whole.
        [none] = measure("--resource", "pods", "--namespace", "no-such-namespace")
        self.assertEqual(int(none["objects"]), 0)
        of_pods = {name: int(line["peak_rss_kb"]) - int(none["peak_rss_kb"])
                   for name, line in (("whole", whole), ("kept", kept))}
        self.assertLess(of_pods["kept"], of_pods["whole"] * 0.5)

    def test_namespaces_are_merged_into_one_answer(self):
        names = {"many-1", "many-3", "many-7"}
        flags = [flag for name in sorted(names) for flag in ("--namespace", name)]
        [line] = measure("--resource", "pods", *flags)
        self.assertEqual(line["checksum"],
                         cluster().checksum(keep=lambda item: item["metadata"]["namespace"] in names))

    def test_selectors_are_passed_to_the_server(self):
        selector = "app in (billing,search),!no-such-label"
        [line] = measure("--resource", "pods", "--selector", selector)
        wanted = cluster().kubectl("get", "pods", "-A", "-l", selector, "-o", "name").split()
        self.assertEqual(int(line["objects"]), len(wanted))
        self.assertGreater(len(wanted), 0)
        [line] = measure("--resource", "pods", "--field-selector", "metadata.namespace=many-2,status.phase!=Failed")
        self.assertEqual(int(line["objects"]), N_MANY_PODS // N_MANY_NAMESPACES)

    def test_sanitized_build_syncs_10000_pods_and_leaks_nothing(self):
        [line] = measure("--resource", "pods", mode="asan", timeout="120s")
        self.assertEqual(int(line["objects"]), self.n_pods)


class Kinds(unittest.TestCase):
    @needs_cluster("the roles of a new cluster")
    def test_cluster_scoped_names_with_colons(self):
        [line] = measure("--resource", "clusterroles.rbac.authorization.k8s.io", mode="asan")
        self.assertEqual(line["checksum"], cluster().checksum("/apis/rbac.authorization.k8s.io/v1/clusterroles"))
        self.assertGreater(int(line["objects"]), 20)

    def test_a_resource_may_be_named_with_group_and_version(self):
        lines = measure("--resource", "deployments.apps", "--resource", "deployments.v1.apps", "--resource",
                        "namespaces", mode="asan")
        self.assertEqual([line["resource"] for line in lines], ["deployments.apps", "deployments.apps", "namespaces"])

    def test_custom_resources_have_their_metadata_last(self):
        definition = os.path.join(ROOT, "tests", "integration", "gadgets.yaml")
        cluster().kubectl("apply", "-f", definition)
        cluster().kubectl("wait", "--for=condition=Established", "crd/gadgets.test.kinformer.dev", "--timeout=60s")
        cluster().make_namespace("sync-gadgets")
        for i in range(3):
            cluster().kubectl("create", "-f", "-", stdin=f"""
apiVersion: test.kinformer.dev/v1
kind: Gadget
metadata: {{name: gadget-{i}, namespace: sync-gadgets}}
spec: {{number: {2**53 + i}, text: "a{chr(0x1F600)}b"}}
""")
        [line] = measure("--resource", "gadgets.test.kinformer.dev", "--namespace", "sync-gadgets", mode="asan")
        self.assertEqual(line["checksum"], cluster().checksum("/apis/test.kinformer.dev/v1/namespaces/sync-gadgets/gadgets"))
        self.assertEqual(line["objects"], "3")


class Credentials(unittest.TestCase):
    def test_every_kind_of_kubeconfig(self):
        wanted = cluster().checksum("/api/v1/namespaces")
        for name in ("admin", "admin-files", "admin-token", "token", "token-file"):
            with self.subTest(kubeconfig=name):
                [line] = measure("--resource", "namespaces", mode="asan", kubeconfig=cluster().kubeconfig(name))
                self.assertEqual(line["checksum"], wanted)

    def test_the_environment_names_the_kubeconfig(self):
        code, out, err = run_daemon("--resource", "namespaces", "--measure",
                                    env={"KUBECONFIG": "/does/not/exist:" + cluster().kubeconfig()})
        self.assertEqual(code, 0, err)
        self.assertIn("resource=namespaces", out)


if __name__ == "__main__":
    unittest.main()
