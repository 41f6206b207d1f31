"""Requests of the library against the API server: each verb, and what each refusal is called."""

import json
import os
import subprocess
import tempfile
import unittest

from harness import PATIENCE, build_probe, cluster, config_map, needs_cluster, wait_until

NAMESPACE = "requests"
FOLDER = None
PROGRAM = None

DEPLOYMENT = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": NAMESPACE},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}},
             "template": {"metadata": {"labels": {"app": "web"}},
                          "spec": {"containers": [{"name": "main", "image": "none"}]}}},
}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "guarded", "namespace": NAMESPACE,
                                                       "labels": {"app": "guarded"}},
       "spec": {"containers": [{"name": "main", "image": "none"}]}}


def setUpModule():
    global FOLDER, PROGRAM
    FOLDER = tempfile.TemporaryDirectory(prefix="kinformer-requests-")
    PROGRAM = build_probe(FOLDER.name, "request_probe.c", ["cc", "-std=c11", "-D_GNU_SOURCE"])
    cluster().make_namespace(NAMESPACE)


def tearDownModule():
    FOLDER.cleanup()


def run(*args, body=None, user="admin"):
    text = body if isinstance(body, str) or body is None else json.dumps(body)
    done = subprocess.run([PROGRAM, *args], input=text or "", stdout=subprocess.PIPE, text=True, timeout=PATIENCE,
                          check=False, env={**os.environ, "KUBECONFIG": cluster().kubeconfig(user)})
    if done.returncode not in (0, 1):
        raise AssertionError(f"request-probe {' '.join(args)} ended with {done.returncode}")
    return done.returncode, done.stdout


def ask(verb, resource, name, *options, body=None, namespace=NAMESPACE, **more):
    """The answer of a request that succeeds."""
    code, text = run(verb, resource, namespace, name, *options, body=body, **more)
    if code != 0:
        raise AssertionError(f"{verb} {resource} {name}: {text}")
    return json.loads(text)


def refusal(verb, resource, name, *options, body=None, namespace=NAMESPACE, **more):
    """(code, HTTP status, message) of a request that does not."""
    code, text = run(verb, resource, namespace, name, *options, body=body, **more)
    if code != 1:
        raise AssertionError(f"{verb} {resource} {name} was not refused: {text}")
    _, name, status, message = text.split(" ", 3)
    return name, int(status), message


def names(resource, *options):
    return [item["metadata"]["name"] for item in ask("list", resource, "-", *options)["items"]]


class Objects(unittest.TestCase):
    def test_objects_are_made_once_read_changed_and_deleted(self):
        made = ask("create", "configmaps", "-", body=config_map("one", NAMESPACE))
        self.assertEqual(ask("get", "configmaps", "one")["metadata"]["uid"], made["metadata"]["uid"])
        self.assertEqual(refusal("create", "configmaps", "-", body=config_map("one", NAMESPACE))[:2], ("EXISTS", 409))
        made["data"]["value"] = "y"
        changed = ask("update", "configmaps", "one", body=made)
        self.assertEqual(changed["data"], {"value": "y"})
        # With the version of before.
        self.assertEqual(refusal("update", "configmaps", "one", body=made)[:2], ("CONFLICT", 409))
        self.assertEqual(ask("delete", "configmaps", "one")["status"], "Success")
        self.assertEqual(refusal("get", "configmaps", "one")[:2], ("NOT_FOUND", 404))
        self.assertEqual(refusal("delete", "configmaps", "one")[:2], ("NOT_FOUND", 404))

    def test_what_is_not_acceptable_is_told_apart(self):
        bad = config_map("Not A Name", NAMESPACE)
        self.assertEqual(refusal("create", "configmaps", "-", body=bad)[:2], ("SERVER", 422))
        self.assertEqual(refusal("create", "configmaps", "-", body="{")[:2], ("SERVER", 400))
        self.assertEqual(refusal("get", "configmaps", "one", user="user")[:2], ("FORBIDDEN", 403))
        unknown = json.loads(config_map("strict", NAMESPACE)) | {"unknown": 1}
        self.assertEqual(refusal("create", "configmaps", "-", "fieldValidation=Strict", body=unknown)[:2],
                         ("SERVER", 400))

    def test_a_dry_run_leaves_nothing(self):
        self.assertEqual(ask("create", "configmaps", "-", "dryRun=1", body=config_map("dry", NAMESPACE))
                         ["metadata"]["name"], "dry")
        self.assertEqual(refusal("get", "configmaps", "dry")[0], "NOT_FOUND")
        ask("create", "configmaps", "-", body=config_map("dry", NAMESPACE))
        ask("delete", "configmaps", "dry", "dryRun=1")
        ask("merge", "configmaps", "dry", "dryRun=1", body={"data": {"value": "z"}})
        self.assertEqual(ask("get", "configmaps", "dry")["data"], {"value": "x"})
        ask("delete", "configmaps", "dry")

    def test_preconditions_and_propagation_are_kept_to(self):
        made = ask("create", "configmaps", "-", body=config_map("careful", NAMESPACE))["metadata"]
        self.assertEqual(refusal("delete", "configmaps", "careful", "uid=another")[:2], ("CONFLICT", 409))
        self.assertEqual(refusal("delete", "configmaps", "careful", "resourceVersion=1")[:2], ("CONFLICT", 409))
        left = ask("delete", "configmaps", "careful", f"uid={made['uid']}", "foreground=1")["metadata"]
        self.assertEqual(left["finalizers"], ["foregroundDeletion"])
        # A garbage collector would end that; not every cluster of the tests has one.
        run("merge", "configmaps", NAMESPACE, "careful", body={"metadata": {"finalizers": None}})
        wait_until(lambda: run("get", "configmaps", NAMESPACE, "careful")[0] == 1, "the object has gone")
        self.assertEqual(refusal("get", "configmaps", "careful")[0], "NOT_FOUND")

    def test_a_collection_is_deleted_by_its_labels(self):
        for i in range(6):
            ask("create", "configmaps", "-", body=config_map(f"many-{i}", NAMESPACE, labels={"odd": str(i % 2)}))
        self.assertEqual(names("configmaps", "labelSelector=odd=1"), ["many-1", "many-3", "many-5"])
        ask("deletecollection", "configmaps", "-", "labelSelector=odd=1")
        self.assertEqual(names("configmaps", "labelSelector=odd"), ["many-0", "many-2", "many-4"])
        first = ask("list", "configmaps", "-", "labelSelector=odd", "limit=2")
        rest = ask("list", "configmaps", "-", "labelSelector=odd", "limit=2",
                   "continue=" + first["metadata"]["continue"])
        self.assertEqual([item["metadata"]["name"] for item in first["items"] + rest["items"]],
                         ["many-0", "many-2", "many-4"])
        ask("deletecollection", "configmaps", "-", "labelSelector=odd")

    def test_any_path_can_be_asked_for(self):
        code, text = run("raw", "GET", "/version")
        self.assertEqual((code, json.loads(text)["major"]), (0, "1"))
        code, text = run("raw", "GET", "/no/such/path")
        self.assertEqual((code, text.split()[:3]), (1, ["error", "NOT_FOUND", "404"]))


class Patches(unittest.TestCase):
    def setUp(self):
        ask("create", "deployments.apps", "-", body=DEPLOYMENT)

    def tearDown(self):
        ask("delete", "deployments.apps", "web")

    def containers(self):
        return [item["name"] for item in
                ask("get", "deployments.apps", "web")["spec"]["template"]["spec"]["containers"]]

    def test_each_patch_does_what_its_kind_says(self):
        ask("json-patch", "deployments.apps", "web",
            body=[{"op": "test", "path": "/spec/replicas", "value": 1},
                  {"op": "replace", "path": "/spec/replicas", "value": 2}])
        self.assertEqual(ask("get", "deployments.apps", "web")["spec"]["replicas"], 2)
        other = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "none"}]}}}}
        ask("strategic", "deployments.apps", "web", body=other)
        self.assertEqual(sorted(self.containers()), ["main", "side"])
        ask("merge", "deployments.apps", "web", body=other)
        self.assertEqual(self.containers(), ["side"])

    def test_an_apply_that_takes_anothers_field_is_a_conflict_until_it_is_forced(self):
        wish = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 5}}
        ask("merge", "deployments.apps", "web", "fieldManager=first", body={"spec": {"replicas": 3}})
        code, status, message = refusal("apply", "deployments.apps", "web", "fieldManager=second", body=wish)
        self.assertEqual((code, status), ("CONFLICT", 409))
        self.assertIn("first", message)
        ask("apply", "deployments.apps", "web", "fieldManager=second", "force=1", body=wish)
        self.assertEqual(ask("get", "deployments.apps", "web")["spec"]["replicas"], 5)

    def test_subresources_change_their_part(self):
        scale = ask("get", "deployments.apps", "web", "subresource=scale")
        scale["spec"]["replicas"] = 4
        ask("update", "deployments.apps", "web", "subresource=scale", body=scale)
        ask("merge", "deployments.apps", "web", "subresource=status",
            body={"spec": {"replicas": 9}, "status": {"replicas": 4}})
        now = ask("get", "deployments.apps", "web")
        self.assertEqual((now["spec"]["replicas"], now["status"]["replicas"]), (4, 4))


@needs_cluster("disruption budgets")
class Eviction(unittest.TestCase):
    def test_a_budget_is_kept_until_it_is_gone(self):
        ask("create", "pods", "-", body=POD)
        ask("create", "poddisruptionbudgets.policy", "-", body={
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "guard", "namespace": NAMESPACE},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}})
        # A pod that does not run may always be evicted.
        ask("merge", "pods", "guarded", "subresource=status", body={
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction",
                    "metadata": {"name": "guarded", "namespace": NAMESPACE}}
        code, status, _ = refusal("create", "pods", "guarded", "subresource=eviction", body=eviction)
        self.assertEqual((code, status), ("TOO_MANY_REQUESTS", 429))
        ask("delete", "poddisruptionbudgets.policy", "guard")
        # The server may take a moment to see that.
        wait_until(lambda: run("create", "pods", NAMESPACE, "guarded", "subresource=eviction",
                               body=eviction)[0] == 0, "the eviction")
        wait_until(lambda: run("delete", "pods", NAMESPACE, "guarded", "grace=0")[0] in (0, 1) and
                   refusal("get", "pods", "guarded")[0] == "NOT_FOUND", "the pod has gone")


if __name__ == "__main__":
    unittest.main()
