"""A daemon to which nothing happens sleeps."""

import base64
import os
import re
import tempfile
import time
import unittest

from harness import Daemon, cluster, needs_sim, write_config

TYPES = [name + group for group, names in {
    "": "configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims persistentvolumes pods podtemplates "
        "replicationcontrollers resourcequotas secrets serviceaccounts services",
    ".apiextensions.k8s.io": "customresourcedefinitions",
    ".apiregistration.k8s.io": "apiservices",
    ".apps": "controllerrevisions daemonsets deployments replicasets statefulsets",
    ".autoscaling": "horizontalpodautoscalers",
    ".batch": "cronjobs jobs",
    ".coordination.k8s.io": "leases",
    ".discovery.k8s.io": "endpointslices",
    ".events.k8s.io": "events",
    ".networking.k8s.io": "ingressclasses ingresses ipaddresses networkpolicies servicecidrs",
    ".policy": "poddisruptionbudgets",
    ".rbac.authorization.k8s.io": "clusterrolebindings clusterroles rolebindings roles",
    ".scheduling.k8s.io": "priorityclasses",
    ".storage.k8s.io": "csidrivers csinodes csistoragecapacities storageclasses volumeattachments volumeattributesclasses",
}.items() for name in names.split()]
SECONDS = 10


def wake_ups(pid):
    """Of each kind of thread, since it began."""
    found = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="utf-8") as file:
            lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        found[lines["Name"]] = found.get(lines["Name"], 0) + int(lines["voluntary_ctxt_switches"])
    return found


def authority_in_file(folder):
    """A kubeconfig with the authority in a file of its own, as a pod has it: such files are looked at every ten seconds."""
    with open(cluster().kubeconfig(), encoding="utf-8") as file:
        text = file.read()
    name, data = re.search(r"(certificate-authority)-data: (\S+)", text).groups()
    with open(os.path.join(folder, "ca.crt"), "wb") as file:
        file.write(base64.b64decode(data))
    path = os.path.join(folder, "kubeconfig")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(f"{name}-data: {data}", f"{name}: {folder}/ca.crt"))
    return path


@needs_sim("it starts what it needs, and counts on a quiet server")
class Idle(unittest.TestCase):
    def test_a_daemon_of_45_types_wakes_less_than_once_a_second(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        # With all that has a thread of its own.
        config = write_config(folder, *TYPES)
        with open(config, "a", encoding="utf-8") as file:
            file.write(f"stateDir: {folder}/state\n")
        daemon = self.enterContext(Daemon("--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0", "--pass-through",
                                          "--exec", "cat >/dev/null", config=config, mode="release",
                                          kubeconfig=authority_in_file(folder)))
        self.assertEqual(len(TYPES), 45)
        daemon.wait_synced(len(TYPES))
        for _ in range(3):  # on a machine with much to do, what the start left may take longer
            time.sleep(3)
            before = wake_ups(daemon.process.pid)
            time.sleep(SECONDS)
            after = wake_ups(daemon.process.pid)
            n = {name: after[name] - before.get(name, 0) for name in after}
            if sum(n.values()) < SECONDS:
                return
        self.fail(n)


if __name__ == "__main__":
    unittest.main()
