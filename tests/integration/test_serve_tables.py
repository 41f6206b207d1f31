"""Tables of every built-in type: the same bytes from the API server and from the daemon, but for ages.

    python3 test_serve_tables.py --record

writes what the API server shows to tests/data/tables/objects.
"""

import atexit
import json
import os
import re
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from harness import ROOT, Cluster, need_cluster, wait_until, write_config
from sim_steps import TABLE, thing
from table_objects import DELETED, NAMESPACE, definitions, objects
from test_serve import Served, Watch, ask

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

# What differs, and why.
OTHER_ORDER = {
    "flowschemas.flowcontrol.apiserver.k8s.io":
        "in lists the API server sorts them by precedence; kinformerd keeps the order of keys, by which pages are cut",
}
OTHER_OBJECT = {
    "daemonsets.apps":
        "beside its cells the API server shows the object without an annotation that apps/v1 has in place of a field of old",
    **dict.fromkeys(("plains.tables.example.com", "showns.tables.example.com"),
                    "the metadata of custom resources is in another order there than in the object itself"),
}
OTHER_EVENTS = {
    "apiservices.apiregistration.k8s.io": "the aggregator repeats the columns in every event of a watch, nobody else does",
}
# Beside these: of several storage classes that say that they are the default the API server marks the newest in a list,
# kinformerd each, as it writes a row from its object alone (test_each_default_class_of_several_is_marked).


def setUpModule():
    need_cluster("what is compared")


class Type:
    """One that is listed by discovery."""

    def __init__(self, group, version, entry):
        self.group, self.version = group, version
        self.kind, self.resource = entry["responseKind"]["kind"], entry["resource"]
        self.is_namespaced = entry["scope"] == "Namespaced"
        self.name = self.resource + ("." + group if group else "")
        self.api_version = f"{group}/{version}" if group else version

    def path(self, namespace="", name="", subresource=""):
        root = ("/apis/" if self.group else "/api/") + self.api_version
        space = f"/namespaces/{namespace}" if self.is_namespaced and namespace else ""
        return root + space + "".join("/" + part for part in (self.resource, name, subresource) if part)


class Asked:
    """The API server, as its admin."""

    def __init__(self, cluster):
        self.open = cluster.connect

    def send(self, method, target, body=None, kind="application/json"):
        connection = self.open()
        connection.request(method, target, None if body is None else json.dumps(body), {"Content-Type": kind})
        answer = connection.getresponse()
        status, text = answer.status, answer.read()
        connection.close()
        if status >= 300:
            raise AssertionError(f"{method} {target}: {status} {text.decode()}")
        return json.loads(text)

    def types(self):
        for root in ("/api", "/apis"):
            for group in json.loads(ask(self, root, headers={"Accept": DISCOVERY})[2])["items"]:
                version = group["versions"][0]
                for entry in version["resources"]:
                    if {"list", "watch"} <= set(entry["verbs"]):
                        yield Type(group["metadata"].get("name", ""), version["version"], entry)

    def make(self, of, one):
        """An object of this type; its status is written to subresources."""
        space, name = one["metadata"]["namespace"], one["metadata"]["name"]
        if not of.is_namespaced:
            del one["metadata"]["namespace"]
        made = self.send("POST", of.path(space), {key: one[key] for key in one if key not in ("status", "approval")})
        for subresource in ("approval", "status"):
            if subresource in one:
                self.send("PUT", of.path(space, name, subresource), {**made, "status": {
                    **made.get("status", {}), **one[subresource]}})
                made = self.send("GET", of.path(space, name))
        if (of.kind, name) in DELETED:
            self.send("DELETE", of.path(space, name))


def make_all(cluster):
    """Who asks its server, and the types of which there are objects now."""
    cluster.make_namespace(NAMESPACE)
    for definition in definitions():
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(definition))
        cluster.kubectl("wait", "--for=condition=Established", "crd/" + definition["metadata"]["name"])
    real = Asked(cluster)
    types = list(real.types())
    kinds = {(of.api_version, of.kind): of for of in types}
    for one in objects():
        real.make(kinds[one["apiVersion"], one["kind"]], one)
    return real, types


def without_ages(body):
    """What counts seconds or minutes: nothing else here is as young."""
    body = re.sub(rb'"(\d+m)?(\d+s|\d+m)"', b'"AGE"', body)
    return re.sub(rb'("metadata":\{"resourceVersion":)"\d+"', rb'\1"N"', body, count=1)


class TablesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        atexit.unregister(cls.cluster.close)
        cls.addClassCleanup(cls.cluster.close)
        cls.real, cls.types = make_all(cls.cluster)
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        config = write_config(folder, *[of.name for of in cls.types], serve=True)  # Secrets, too
        cls.served = cls.enterClassContext(Served("--config", config, resource=(), kubeconfig=cls.cluster.kubeconfig()))

    def asked(self, target):
        """What both say, once the daemon has what the server has."""
        def settled():
            return self.version(self.real, target) <= self.version(self.served, target)
        wait_until(settled, "the daemon knows " + target)
        return [without_ages(ask(where, target, headers={"Accept": TABLE})[2]) for where in (self.real, self.served)]

    @staticmethod
    def without_object(of, target):
        return target + "?includeObject=None" if of.name in OTHER_OBJECT else target

    @staticmethod
    def version(where, target):
        body = json.loads(ask(where, target)[2])
        return max([int(item["metadata"]["resourceVersion"]) for item in body.get("items", [body])], default=0)

    def each(self, check):
        """Of all types at once; all that differ are told."""
        self.assertGreater(len(self.types), 60)
        with ThreadPoolExecutor(8) as pool:
            wrong = [text for text in pool.map(check, self.types) if text]
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    @staticmethod
    def told(of, real, ours):
        if real == ours:
            return None
        at = next((i for i, (a, b) in enumerate(zip(real, ours)) if a != b), min(len(real), len(ours)))
        return f"{of.name} at {at}\n  real {real[max(at - 300, 0):at + 150]}\n  ours {ours[max(at - 300, 0):at + 150]}"

    def test_lists(self):
        def check(of):
            if len(json.loads(ask(self.real, of.path())[2])["items"]) == 0:
                return "no object of " + of.name
            real, ours = self.asked(self.without_object(of, of.path()))
            if of.name in OTHER_ORDER:
                self.assertNotEqual(real, ours, "a difference that is none any more")
                real, ours = (sorted(json.dumps(row) for row in json.loads(body)["rows"]) for body in (real, ours))
            return self.told(of, real, ours)
        self.each(check)

    def test_single_objects(self):
        def check(of):
            for one in json.loads(ask(self.real, of.path())[2])["items"]:
                target = of.path(one["metadata"].get("namespace", ""), one["metadata"]["name"])
                wrong = self.told(of, *self.asked(self.without_object(of, target)))
                if wrong:
                    return wrong
            return None
        self.each(check)

    def test_events_of_watches(self):
        """Those of what is there already: they come in an order of their own."""
        def events(where, of):
            names = {(one["metadata"].get("namespace"), one["metadata"]["name"])
                     for one in json.loads(ask(where, of.path())[2])["items"]}
            target = self.without_object(of, of.path())
            with Watch(where, target + ("&" if "?" in target else "?") + "watch=1", {"Accept": TABLE}) as watch:
                lines = [without_ages(watch.answer.readline()) for _ in names]
            columns = [json.loads(line)["object"]["columnDefinitions"] is not None for line in lines]
            self.assertEqual(columns, [i == 0 or (where is self.real and of.name in OTHER_EVENTS)
                                       for i in range(len(lines))], of.name)
            definitions = json.dumps(json.loads(lines[0])["object"]["columnDefinitions"])
            return definitions + "".join(sorted(re.sub(r'"columnDefinitions":(null|\[.*?\]),"rows"', '"rows"', line.decode())
                                                for line in lines))
        self.each(lambda of: self.told(of, events(self.real, of), events(self.served, of)))

    def test_events_of_changes(self):
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
        before = self.real.send("POST", path, thing("v1", "ConfigMap", "changed"))["metadata"]["resourceVersion"]
        self.served.wait_for(path, before)
        target = f"{path}?watch=1&resourceVersion={before}"
        with Watch(self.real, target, {"Accept": TABLE}) as real, Watch(self.served, target, {"Accept": TABLE}) as ours:
            self.real.send("PATCH", path + "/changed", {"data": {"a": "b"}}, "application/merge-patch+json")
            self.real.send("DELETE", path + "/changed")
            events = [[without_ages(watch.answer.readline()) for _ in range(2)] for watch in (real, ours)]
        self.assertEqual(events[1], events[0])
        self.assertEqual([json.loads(line)["type"] for line in events[0]], ["MODIFIED", "DELETED"])

    def test_each_default_class_of_several_is_marked(self):
        path = "/apis/storage.k8s.io/v1/storageclasses"
        second = thing("storage.k8s.io/v1", "StorageClass", "second", provisioner="example.com/p", metadata={
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}})
        self.real.send("POST", path, second)
        marked = [re.findall(rb'"cells":\["([^"]*) \(default\)"', body) for body in self.asked(path)]
        self.real.send("DELETE", path + "/second")
        self.served.wait_for(path, self.real.send("GET", path)["metadata"]["resourceVersion"])
        self.assertEqual(marked, [[b"second"], [b"default", b"second"]])


def written(value):
    """As Go writes JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", text)


def record(folder):
    """For tests/unit/test_table.c, which needs no server. Columns go without what is said of them."""
    real, types = make_all(Cluster())
    made = {one["metadata"]["name"] for one in objects() + definitions()}
    for of in types:
        if of.group.endswith("example.com"):
            continue
        table = json.loads(ask(real, of.path() + "?includeObject=Object", headers={"Accept": TABLE})[2])
        now = int(time.time())
        columns = [{key: column[key] for key in ("name", "type", "format", "priority") if column[key] != ""}
                   for column in table["columnDefinitions"]]
        rows = [row for row in table["rows"] if row["object"]["metadata"]["name"] in made]
        for row in rows:
            row["object"]["metadata"].pop("managedFields", None)
            del row["object"]["kind"], row["object"]["apiVersion"]
        lists = [",\n".join(written(item) for item in items)
                 for items in (columns, [{"cells": row["cells"], "object": row["object"]} for row in rows])]
        with open(os.path.join(folder, of.name + ".json"), "w", encoding="utf-8") as file:
            file.write(f'{{"now":{now},\n"columns":[\n{lists[0]}],\n"rows":[\n{lists[1]}]}}\n')


if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        record(os.path.join(ROOT, "tests", "data", "tables", "objects"))
    else:
        unittest.main()
