"""The library as programs use it: several namespaces, metadata alone, a factory, an index, from C++."""

import json
import os
import signal
import subprocess
import tempfile
import unittest

from harness import PATIENCE, ROOT, build_probe, cluster, config_map, wait_until

N_NAMESPACES = 5
N_PODS = 200
NAMESPACES = [f"lib-{i}" for i in range(N_NAMESPACES)]
FOLDER = None


def setUpModule():
    global FOLDER
    FOLDER = tempfile.TemporaryDirectory(prefix="kinformer-library-")
    cluster().loader("load", "-pods", str(N_PODS), "-namespaces", str(N_NAMESPACES), "-nodes", "4", "-prefix", "lib")


def tearDownModule():
    for name in NAMESPACES:
        cluster().loader("delete", "-namespace", name)
    FOLDER.cleanup()


def environment(**more):
    return {**os.environ, "KUBECONFIG": cluster().kubeconfig(), **more}


class Probe:
    """A running store-probe."""

    program = None

    def __init__(self, *args):
        if Probe.program is None:
            Probe.program = build_probe(FOLDER.name, "store_probe.c", ["cc", "-std=c11", "-D_GNU_SOURCE"])
        self.process = subprocess.Popen([Probe.program, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=environment())

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self.process.kill()
        self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        if kind is None and code != 0:
            raise AssertionError(f"store-probe ended with {code}")

    def ask(self):
        """(keys in the order of the list, key -> resourceVersion, the numbers at the end)"""
        self.process.stdin.write("?\n")
        self.process.stdin.flush()
        keys, versions = [], {}
        while not (line := self.process.stdout.readline().strip()).startswith("end"):
            if not line:
                raise AssertionError("store-probe ended")
            key, _, version = line.partition("@")
            keys.append(key)
            versions[key] = version
        return keys, versions, {name: int(value) for name, value in (pair.split("=") for pair in line.split()[1:])}

    def wait_equal(self, wanted):
        wait_until(lambda: self.ask()[1] == wanted(), "the stores equal the server")


def in_namespaces(item):
    return item["metadata"].get("namespace") in NAMESPACES


class Namespaces(unittest.TestCase):
    def test_five_namespaces_are_one(self):
        with Probe("pods", *NAMESPACES) as probe:
            keys, versions, numbers = probe.ask()
            self.assertEqual(versions, cluster().versions(keep=in_namespaces))
            self.assertEqual(len(keys), N_PODS)
            self.assertEqual(keys, sorted(keys, key=str.encode))
            wait_until(lambda: probe.ask()[2]["told"] == N_PODS, "the handler is told every namespace")
            self.assertGreater(numbers["received_bytes"], N_PODS * 10000)

    def test_changes_in_every_namespace_arrive(self):
        with Probe("configmaps", *NAMESPACES) as probe:
            def wanted():
                return cluster().versions("/api/v1/configmaps", in_namespaces)
            for name in NAMESPACES:
                cluster().kubectl("apply", "-f", "-", stdin=config_map("probe", name))
            probe.wait_equal(wanted)
            cluster().kubectl("delete", "configmap", "probe", "-n", NAMESPACES[2])
            cluster().kubectl("apply", "-f", "-", stdin=config_map("probe", NAMESPACES[0], data="y"))
            probe.wait_equal(wanted)
            self.assertEqual(len(probe.ask()[0]), N_NAMESPACES - 1)
            wait_until(lambda: probe.ask()[2]["told"] == N_NAMESPACES - 1, "the handler is told the deletion")

    def test_label_selector_is_the_same_in_each(self):
        with Probe("-l", "app=billing", "pods", *NAMESPACES) as probe:
            _, versions, _ = probe.ask()
            self.assertEqual(versions, cluster().versions(
                keep=lambda item: in_namespaces(item) and item["metadata"]["labels"]["app"] == "billing"))
            self.assertTrue(0 < len(versions) < N_PODS)


class MetadataOnly(unittest.TestCase):
    def test_keys_and_versions_equal_kubectl_with_far_fewer_bytes(self):
        with Probe("pods", *NAMESPACES) as whole, Probe("-m", "pods", *NAMESPACES) as metadata:
            _, versions, few = metadata.ask()
            self.assertEqual(versions, cluster().versions(keep=in_namespaces))
            self.assertEqual(versions, whole.ask()[1])
            many = whole.ask()[2]
            print(f"  metadata {few['received_bytes']} of {many['received_bytes']} bytes")
            self.assertLess(few["received_bytes"], many["received_bytes"] * 0.6)

    def test_changes_arrive_as_metadata(self):
        name = NAMESPACES[4]
        with Probe("-m", "configmaps", name) as probe:
            before = probe.ask()[2]["received_bytes"]
            cluster().kubectl("create", "-f", "-", stdin=config_map("large", name, data="x" * 200000))
            wait_until(lambda: f"{name}/large" in probe.ask()[1], "the new object")
            cluster().kubectl("label", "configmap", "large", "a=b", "-n", name)
            probe.wait_equal(lambda: cluster().versions(f"/api/v1/namespaces/{name}/configmaps"))
            self.assertLess(probe.ask()[2]["received_bytes"] - before, 20000)
            cluster().kubectl("delete", "configmap", "large", "-n", name)
            probe.wait_equal(lambda: cluster().versions(f"/api/v1/namespaces/{name}/configmaps"))


def example(name):
    return os.path.join(ROOT, "build", "asan", "examples", name)


class Examples(unittest.TestCase):
    def test_node_index_finds_pods_by_container(self):
        pods = json.loads(cluster().kubectl("get", "--raw", "/api/v1/pods"))["items"]
        here = [pod for pod in pods if pod["spec"].get("nodeName") == "node-001"]
        keys = sorted(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in here)

        def containers(pod):
            # A pod whose writer lost its server between pod and status has none.
            return [status["containerID"] for status in pod["status"].get("containerStatuses", [])]
        container = next(ids[0] for ids in map(containers, here) if ids)
        owners = sorted(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in here
                        if container in containers(pod))
        done = subprocess.run([example("node-index")], input=f"-\n{container}\nno-such\n", env=environment(
            NODE_NAME="node-001"), text=True, stdout=subprocess.PIPE, timeout=PATIENCE, check=True)
        self.assertEqual(done.stdout.splitlines(), [*keys, *owners, "no-such: no pod"])
        self.assertGreater(len(keys), 0)

    def test_event_loop_counts_on_one_thread(self):
        with subprocess.Popen([example("event-loop")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=environment()) as process:
            def counts():
                process.stdin.write("\n")
                process.stdin.flush()
                return process.stdout.readline()

            def expected():
                listed = [cluster().kubectl("get", resource, "-A", "-o", "name").split() for resource in ("pods", "nodes")]
                return "{} pods, {} nodes\n".format(*map(len, listed))
            wait_until(lambda: counts() == expected(), "everything counted")
            before = expected()
            cluster().loader("load", "-pods", "3", "-namespaces", "1", "-prefix", "loop")
            wait_until(lambda: counts() == expected(), "more pods")
            self.assertNotEqual(expected(), before)
            cluster().loader("delete", "-namespace", "loop-0")
            wait_until(lambda: counts() == expected(), "fewer pods")
            process.stdin.close()
            self.assertEqual(process.wait(PATIENCE), 0)

    def test_shared_factory_tells_both_handlers(self):
        with tempfile.NamedTemporaryFile(mode="w+", encoding="utf-8") as out:
            def wait_for(*lines):
                def told():
                    with open(out.name, encoding="utf-8") as file:
                        text = file.read().splitlines()
                    return all(line in text for line in lines)
                wait_until(told, f"the lines {lines}")
            with subprocess.Popen([example("shared-factory"), "team"], stdout=out, stderr=subprocess.STDOUT,
                                  env=environment()) as process:
                n_pods = sum(1 for key in cluster().versions("/api/v1/pods?labelSelector=team")
                             if key.startswith("lib-0/"))
                wait_for(f"lib-0 has {n_pods} pods", "namespace lib-0: there")
                cluster().loader("load", "-pods", "1", "-namespaces", "1", "-prefix", "shared")
                [key] = [key for key in cluster().versions() if key.startswith("shared-0/")]
                wait_for(f"new {key}", "namespace shared-0: there")
                cluster().loader("delete", "-namespace", "shared-0")
                wait_for(f"gone {key}")
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(PATIENCE), 0)


class Cxx(unittest.TestCase):
    def test_a_cxx_program_uses_the_library(self):
        program = build_probe(FOLDER.name, "cxx_probe.cc", ["c++", "-std=c++11"])
        done = subprocess.run([program], env=environment(), text=True, stdout=subprocess.PIPE, timeout=PATIENCE, check=True)
        names = cluster().kubectl("get", "namespaces", "-o", "name").split()
        self.assertEqual(done.stdout.splitlines(), sorted(name.removeprefix("namespace/") for name in names))


if __name__ == "__main__":
    unittest.main()
