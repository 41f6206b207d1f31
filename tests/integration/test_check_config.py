"""--check-config --online: what the server says of a configuration, a line for each thing that is wrong."""

import json
import os
import re
import tempfile
import unittest

from harness import cluster, config_map, make_key_pair, needs_cluster, run_daemon, write_config
from sim import Sim

SPACE = "check-config"


class CheckTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def check(self, *args, user="admin", kubeconfig=None):
        """(exit code, what is printed, the lines of what is wrong)"""
        code, out, err = run_daemon("--kubeconfig", kubeconfig or cluster().kubeconfig(user), "--log-level", "off",
                                    "--check-config", "--online", *args)
        for line in err.splitlines():
            self.assertTrue(line.startswith("kinformerd: "), line)
        return code, out, [line.removeprefix("kinformerd: ") for line in err.splitlines()]

    def account(self, name, *rules):
        """A kubeconfig of a ServiceAccount that may in SPACE what the rules say."""
        cluster().kubectl("create", "serviceaccount", name, "-n", SPACE)
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name, "namespace": SPACE},
                "rules": list(rules)}
        cluster().kubectl("create", "-f", "-", stdin=json.dumps(role))
        cluster().kubectl("create", "rolebinding", name, "-n", SPACE, "--role", name, "--serviceaccount", f"{SPACE}:{name}")
        token = cluster().kubectl("create", "token", name, "-n", SPACE).strip()
        with open(cluster().kubeconfig("nobody"), encoding="utf-8") as file:
            text = re.sub(r"token: .*", "token: " + token, file.read())
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_what_is_there_and_may_be_read_is_good(self):
        code, out, wrong = self.check("--resource", "pods", "--resource", "deployments.v1.apps", "--namespace", "a")
        self.assertEqual((code, wrong), (0, []))
        self.assertIn("configuration is good: 2 resources", out)

    def test_a_line_for_each_thing_that_is_wrong(self):
        code, out, wrong = self.check("--resource", "unicorns", "--resource", "pods", "--resource", "nodes", "--resource",
                                      "bindings", "--resource", "deployments.v9.apps", "--namespace", "a", "--namespace", "b")
        self.assertEqual((code, out), (2, ""))
        self.assertEqual([re.sub(r"(the server )\S+ ", r"\1", line) for line in wrong], [
            "the server has no resource 'unicorns' (see: kubectl api-resources)",
            "nodes have no namespaces, but a was asked for",
            "the resource 'bindings' cannot be listed and watched",
            "the server has no resource 'deployments.v9.apps' (see: kubectl api-resources)"])

    def test_what_nobody_may_is_told_for_each_verb(self):
        code, _, wrong = self.check("--resource", "pods", "--resource", "nodes", "--resource", "unicorns", user="nobody")
        self.assertEqual(code, 2)
        self.assertEqual(wrong[:4], ["pods: no right to list in all namespaces", "pods: no right to watch in all namespaces",
                                     "nodes: no right to list", "nodes: no right to watch"])
        self.assertEqual(len(wrong), 5)

    @needs_cluster("roles, tokens of accounts")
    def test_rights_are_asked_for_each_namespace_and_name(self):
        cluster().make_namespace(SPACE)
        self.addCleanup(cluster().kubectl, "delete", "namespace", SPACE, "--wait=false")
        cluster().kubectl("create", "-f", "-", stdin=config_map("one", SPACE))
        lists = self.account("lists", {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]})
        self.assertEqual(self.check("--resource", "configmaps", "--namespace", SPACE, kubeconfig=lists),
                         (2, "", [f"configmaps: no right to watch in the namespace {SPACE}"]))
        both = self.account("both", {"apiGroups": ["", "apps"], "resources": ["configmaps", "deployments"],
                                     "verbs": ["list", "watch"]})
        space = ("--resource", "configmaps", "--resource", "deployments.apps", "--namespace", SPACE)
        self.assertEqual(self.check(*space, kubeconfig=both)[0], 0)
        self.assertEqual(self.check(*space, "--namespace", "default", kubeconfig=both), (2, "", [
            f"{name}: no right to {verb} in the namespace default"
            for name in ("configmaps", "deployments.apps") for verb in ("list", "watch")]))
        one = self.account("one", {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["one"],
                                   "verbs": ["list", "watch"]})
        named = ("--resource", "configmaps", "--namespace", SPACE, "--field-selector")
        self.assertEqual(self.check(*named, "metadata.name=one", kubeconfig=one)[0], 0)
        self.assertEqual(len(self.check(*named, "metadata.name=two", kubeconfig=one)[2]), 2)

    @needs_cluster("roles")
    def test_delegated_authorization_needs_reviews(self):
        config = write_config(self.folder, "pods")
        with open(config, "a", encoding="utf-8") as file:
            file.write(f"auth: delegated\ntls:\n  certFile: {self.folder}/tls.crt\n  keyFile: {self.folder}/tls.key\n")
        make_key_pair(self.folder + "/tls")
        self.assertEqual(self.check("--config", config, user="nobody"), (2, "", [
            "pods: no right to list in all namespaces", "pods: no right to watch in all namespaces",
            "tokenreviews.authentication.k8s.io: no right to create, as auth: delegated needs",
            "subjectaccessreviews.authorization.k8s.io: no right to create, as auth: delegated needs"]))
        self.assertEqual(self.check("--config", config)[0], 0)

    def test_types_on_demand_are_counted_and_those_named_that_may_not_be_cached(self):
        config = os.path.join(self.folder, "config.yaml")

        def check(user, section="{}"):
            with open(config, "w", encoding="utf-8") as file:
                file.write(f"listen: ['127.0.0.1:0']\npassThrough: true\nonDemand: {section}\n")
            return self.check("--config", config, user=user)

        code, out, wrong = check("admin")
        self.assertEqual((code, wrong), (0, []))
        said, good = out.splitlines()
        n_types = int(re.fullmatch(r"on demand: all (\d+) types may be cached", said).group(1))
        self.assertGreater(n_types, 20)
        self.assertIn("configuration is good: 0 resources", good)
        # Secrets are no matter of rights, and what has no watch is none.
        self.assertIn(f"all {n_types + 1} types", check("admin", "{include: [secrets]}")[1])
        self.assertIn(f"all {n_types - 1} types", check("admin", "{exclude: [configmaps]}")[1])
        code, out, wrong = check("token")
        self.assertEqual((code, wrong), (0, []))
        found = re.match(rf"on demand: (\d+) of {n_types} types may be cached; no right to list and watch in all "
                         r"namespaces: (.*)\n", out)
        others = found.group(2).split(", ")
        self.assertEqual(int(found.group(1)) + len(others), n_types)
        self.assertTrue({"nodes", "deployments.apps"} <= set(others), others)
        self.assertFalse({"pods", "secrets"} & set(others), others)
        self.assertEqual(check("nobody"), (2, "", ["onDemand: no right to list and watch any type in all namespaces"]))

    def test_passing_tokens_on_needs_a_server_with_tls(self):
        with Sim() as sim:
            code, out, wrong = self.check("--resource", "pods", "--pass-through", "--listen", "127.0.0.1:0",
                                          kubeconfig=sim.kubeconfig)
            self.assertEqual((code, out, len(wrong)), (2, "", 1), wrong)
            self.assertIn("passThrough needs a server with https://", wrong[0])

    def test_a_server_that_does_not_answer_is_another_failure(self):
        with open(cluster().kubeconfig(), encoding="utf-8") as file:
            text = re.sub(r"server: .*", "server: https://127.0.0.1:1", file.read())
        path = os.path.join(self.folder, "away")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        code, _, wrong = self.check("--resource", "pods", kubeconfig=path)
        self.assertEqual((code, len(wrong)), (1, 1))

    def test_online_goes_with_checking(self):
        code, _, err = run_daemon("--resource", "pods", "--online")
        self.assertEqual(code, 2)
        self.assertIn("--check-config", err)


if __name__ == "__main__":
    unittest.main()
