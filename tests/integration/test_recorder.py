"""Events that the library records, as people see them."""

import json
import os
import subprocess
import tempfile
import unittest

from harness import PATIENCE, build_probe, cluster, config_map, needs_cluster

NAMESPACE = "events"
FOLDER = None
PROGRAM = None


def setUpModule():
    global FOLDER, PROGRAM
    FOLDER = tempfile.TemporaryDirectory(prefix="kinformer-recorder-")
    PROGRAM = build_probe(FOLDER.name, "recorder_probe.c", ["cc", "-std=c11", "-D_GNU_SOURCE"])
    cluster().make_namespace(NAMESPACE)
    cluster().kubectl("create", "-f", "-", stdin=config_map("subject", NAMESPACE))


def tearDownModule():
    FOLDER.cleanup()


def record(reason, times, note, user="admin"):
    """How many requests were sent, and how many events were dropped and failed, before the end."""
    done = subprocess.run([PROGRAM, NAMESPACE, "subject", reason, str(times), note], stdout=subprocess.PIPE, text=True,
                          timeout=PATIENCE, check=True, env={**os.environ, "KUBECONFIG": cluster().kubeconfig(user)})
    return [int(number) for number in done.stdout.split()]


def events(reason):
    text = cluster().kubectl("get", "--raw", f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events")
    return [event for event in json.loads(text)["items"] if event["reason"] == reason]


class Recorder(unittest.TestCase):
    def test_an_event_has_all_its_parts(self):
        self.assertEqual(record("Single", 1, "one note"), [1, 0, 0])
        [event] = events("Single")
        self.assertTrue(event["metadata"]["name"].startswith("subject."))
        self.assertEqual((event["type"], event["action"], event["note"]), ("Warning", "Probe", "one note"))
        self.assertEqual((event["reportingController"], event["reportingInstance"]), ("kinformer.dev/probe", "probe-1"))
        about = event["regarding"]
        self.assertEqual((about["apiVersion"], about["kind"], about["namespace"], about["name"]),
                         ("v1", "ConfigMap", NAMESPACE, "subject"))
        self.assertIsNone(event.get("series"))

    def test_many_are_a_series(self):
        self.assertEqual(record("Repeated", 30, "again")[1:], [0, 0])
        [event] = events("Repeated")
        self.assertEqual(event["series"]["count"], 30)

    def test_notes_may_be_long_and_of_any_text(self):
        record("Long", 1, "ä€\"<" * 1000)
        [event] = events("Long")
        self.assertEqual(event["note"], ("ä€\"<" * 1000).encode()[:1024].decode(errors="ignore"))

    def test_readers_of_core_events_find_it_by_its_object(self):
        record("Found", 7, "look here")
        text = cluster().kubectl("get", "--raw", f"/api/v1/namespaces/{NAMESPACE}/events?fieldSelector="
                                 "involvedObject.kind%3DConfigMap,involvedObject.name%3Dsubject,reason%3DFound")
        [event] = json.loads(text)["items"]
        self.assertEqual((event["message"], event["type"], event["series"]["count"]), ("look here", "Warning", 7))
        self.assertEqual((event["involvedObject"]["namespace"], event["reportingComponent"]),
                         (NAMESPACE, "kinformer.dev/probe"))
        self.assertEqual(event["metadata"]["resourceVersion"], events("Found")[0]["metadata"]["resourceVersion"])

    @needs_cluster("kubectl, rights")
    def test_kubectl_shows_it_and_rights_are_asked_for(self):
        record("Shown", 7, "look here")
        lines = cluster().kubectl("get", "events", "-n", NAMESPACE, "-o", "wide",
                                  "--field-selector", "reason=Shown").splitlines()
        self.assertEqual(len(lines), 2)
        for part in ("Warning", "Shown", "configmap/subject", "look here", "kinformer.dev/probe, probe-1"):
            self.assertIn(part, lines[1])
        self.assertEqual((lines[0].split()[-2:], lines[1].split()[-2]), (["COUNT", "NAME"], "7"))
        described = cluster().kubectl("describe", "configmap", "-n", NAMESPACE, "subject")
        self.assertIn("look here", described)
        kubectl = cluster().kubectl
        kubectl("create", "role", "-n", NAMESPACE, "looker", "--verb=get", "--resource=configmaps")
        kubectl("create", "rolebinding", "-n", NAMESPACE, "looker", "--role=looker", "--user=user")
        self.assertEqual(record("Refused", 1, "note", user="user"), [0, 0, 1])
        kubectl("create", "role", "-n", NAMESPACE, "recorder", "--verb=create,patch", "--resource=events.events.k8s.io")
        kubectl("create", "rolebinding", "-n", NAMESPACE, "recorder", "--role=recorder", "--user=user")
        self.assertEqual(record("Allowed", 3, "note", user="user")[1:], [0, 0])
        self.assertEqual(events("Allowed")[0]["series"]["count"], 3)


if __name__ == "__main__":
    unittest.main()
