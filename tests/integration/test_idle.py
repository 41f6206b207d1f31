"""A daemon to which nothing happens sleeps."""

import os
import tempfile
import time
import unittest

from harness import Daemon, needs_sim, write_config

TYPES = ("pods", "services", "configmaps", "nodes", "namespaces", "endpoints", "deployments.apps", "replicasets.apps",
         "daemonsets.apps", "statefulsets.apps", "jobs.batch", "cronjobs.batch", "leases.coordination.k8s.io",
         "roles.rbac.authorization.k8s.io", "ingresses.networking.k8s.io")
SECONDS = 10


def wake_ups(pid):
    """Of each kind of thread, since it began."""
    found = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="utf-8") as file:
            lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        found[lines["Name"]] = found.get(lines["Name"], 0) + int(lines["voluntary_ctxt_switches"])
    return found


@needs_sim("it starts what it needs, and counts on a quiet server")
class Idle(unittest.TestCase):
    def test_informers_sleep_while_nothing_happens(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        daemon = self.enterContext(Daemon(config=write_config(folder, *TYPES), mode="release"))
        daemon.wait_synced(len(TYPES))
        time.sleep(3)  # what a start leaves to be done
        before = wake_ups(daemon.process.pid)
        time.sleep(SECONDS)
        after = wake_ups(daemon.process.pid)
        n = {name: after[name] - before.get(name, 0) for name in after}
        # One in half a minute each, and some room; it was one a second of each.
        for name in ("kinf-processor", "kinf-reflector"):
            self.assertLess(n[name], len(TYPES) * SECONDS / 3, n)


if __name__ == "__main__":
    unittest.main()
