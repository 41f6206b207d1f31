"""Watches and lists of kinformerd under random changes, against those of the API server and a naive model.

One watch of everything at the API server tells what happened; from it the model knows what any selection has to be
told from any version on, and what it was at any version. KINF_TEST_SEED repeats the choices of a run.
"""

import contextlib
import json
import os
import random
import re
import tempfile
import unittest
from urllib.parse import quote

from harness import Proxy, cluster
from test_serve import Direct, Served, Watch, body_of

# One is the other's beginning, and "-" and "." come before the "/" of a key.
NAMESPACES = ("model", "model-a")
NAMES = ("o", "o-1", "o.1", "p")
TIERS = ("a", "b", None)
ZONES = ("1", None)
NODES = ("n0", "n1", "")
PHASES = ("Pending", "Running", "Failed")
N_CHANGES = 240
SILENCE = 20.0  # seconds; what is to be told has happened when it is read

# The selections below that say so in as many words are read by an index.
CONFIG = """
resources:
- resource: configmaps
  backoffBase: 100ms
  backoffMax: 500ms
- resource: pods
  backoffBase: 100ms
  backoffMax: 500ms
  indices:
  - {name: byNode, path: spec.nodeName}
  - {name: byHostNetwork, path: spec.hostNetwork}
"""

LABEL_SELECTORS = {
    "": lambda labels: True,
    "tier=a": lambda labels: labels.get("tier") == "a",
    "tier!=a": lambda labels: labels.get("tier") != "a",
    "tier in (a,b),zone=1": lambda labels: labels.get("tier") in ("a", "b") and labels.get("zone") == "1",
    "tier notin (b)": lambda labels: labels.get("tier") != "b",
    "tier": lambda labels: "tier" in labels,
    "!tier,zone": lambda labels: "tier" not in labels and "zone" in labels,
}
FIELD_SELECTORS = {
    "": lambda item: True,
    "metadata.name=o-1": lambda item: item["metadata"]["name"] == "o-1",
    "metadata.name!=o": lambda item: item["metadata"]["name"] != "o",
    "metadata.namespace=model": lambda item: item["metadata"]["namespace"] == "model",
    "metadata.name=o.1,metadata.namespace!=model":
        lambda item: item["metadata"]["name"] == "o.1" and item["metadata"]["namespace"] != "model",
}
POD_FIELD_SELECTORS = {
    **FIELD_SELECTORS,
    "spec.nodeName=n0": lambda item: item["spec"].get("nodeName") == "n0",
    "spec.nodeName=": lambda item: not item["spec"].get("nodeName"),
    "spec.hostNetwork=false": lambda item: not item["spec"].get("hostNetwork"),
    "spec.hostNetwork=true,metadata.name!=p":
        lambda item: item["spec"].get("hostNetwork", False) and item["metadata"]["name"] != "p",
    "status.phase!=Failed": lambda item: item["status"]["phase"] != "Failed",
    "spec.nodeName=n1,status.phase=Running":
        lambda item: item["spec"].get("nodeName") == "n1" and item["status"]["phase"] == "Running",
    "metadata.name=p,spec.nodeName=n0":
        lambda item: item["metadata"]["name"] == "p" and item["spec"].get("nodeName") == "n0",
}
RESOURCES = {"configmaps": FIELD_SELECTORS, "pods": POD_FIELD_SELECTORS}


def key_of(item):
    return item["metadata"]["namespace"], item["metadata"]["name"]


def is_ours(item):
    return item["metadata"].get("namespace") in NAMESPACES


def version_of(item):
    return int(item["metadata"]["resourceVersion"])


class Selection:
    """What a list or a watch asks for."""

    def __init__(self, resource, namespace=None, labels="", fields=""):
        self.resource, self.namespace, self.labels, self.fields = resource, namespace, labels, fields

    @classmethod
    def random(cls, rng):
        resource = rng.choice(list(RESOURCES))
        fields = rng.choice(list(RESOURCES[resource]))
        # Together with the path it may select nothing.
        namespace = rng.choice((None, *NAMESPACES)) if "metadata.namespace" not in fields else None
        return cls(resource, namespace, rng.choice(list(LABEL_SELECTORS)), fields)

    def __repr__(self):
        return f"{self.resource} of {self.namespace}, labels {self.labels!r}, fields {self.fields!r}"

    def has(self, item):
        return item is not None and self.namespace in (None, item["metadata"]["namespace"]) \
            and LABEL_SELECTORS[self.labels](item["metadata"].get("labels", {})) \
            and RESOURCES[self.resource][self.fields](item)

    def target(self, **parameters):
        selectors = {"labelSelector": self.labels, "fieldSelector": self.fields}
        query = {name: value for name, value in {**selectors, **parameters}.items() if value != ""}
        return "/api/v1/" + (f"namespaces/{self.namespace}/" if self.namespace else "") + self.resource + "?" + \
            "&".join(f"{name}={quote(str(value))}" for name, value in query.items())


class Writer:
    """Random changes of both resources, over one connection to the API server."""

    def __init__(self, direct, rng):
        self.rng = rng
        self.connection = direct.open()
        self.present = set()
        self.newest = dict.fromkeys(RESOURCES, 0)  # version of an object that is known to be there

    def close(self):
        self.connection.close()

    def send(self, method, path, body):
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        self.connection.request(method, path, json.dumps(body), {"Content-Type": kind})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 201):
            raise AssertionError(f"{method} {path}: {answer.status} {text[:500]}")
        return json.loads(text)

    def write(self, resource, method, path, body):
        self.newest[resource] = version_of(self.send(method, path, body))

    def create(self, resource, namespace, name, node=""):
        item = {"metadata": {"name": name, "labels": self.labels()}}
        if resource == "pods":
            item["spec"] = {"containers": [{"name": "c", "image": "i"}], "hostNetwork": node == "n0",
                            **({"nodeName": node} if node else {})}
        self.present.add((resource, namespace, name))
        self.write(resource, "POST", f"/api/v1/namespaces/{namespace}/{resource}", item)

    def delete(self, resource, namespace, name):
        self.present.remove((resource, namespace, name))
        self.send("DELETE", f"/api/v1/namespaces/{namespace}/{resource}/{name}", {"gracePeriodSeconds": 0})

    def patch(self, resource, namespace, name, body, subresource=""):
        self.write(resource, "PATCH", f"/api/v1/namespaces/{namespace}/{resource}/{name}{subresource}", body)

    def relabel(self, place, labels):
        self.patch(*place, {"metadata": {"labels": labels}})

    def labels(self):
        return {key: value for key, value in (("tier", self.rng.choice(TIERS)), ("zone", self.rng.choice(ZONES)))
                if value is not None}

    def change(self):
        place = (self.rng.choice(list(RESOURCES)), self.rng.choice(NAMESPACES), self.rng.choice(NAMES))
        if place not in self.present:
            self.create(*place, self.rng.choice(NODES))
        elif self.rng.random() < 0.25:
            self.delete(*place)
        elif self.rng.random() < 0.5:
            self.relabel(place, {"tier": self.rng.choice(TIERS), "zone": self.rng.choice(ZONES)})
        elif place[0] == "pods":
            self.patch(*place, {"status": {"phase": self.rng.choice(PHASES)}}, "/status")
        else:
            self.patch(*place, {"data": {"value": str(self.rng.random())}})

    def change_all(self):
        """So that each selection is told something at last, however long it was told nothing."""
        for place in [(resource, namespace, name) for resource in RESOURCES for namespace in NAMESPACES
                      for name in NAMES]:
            for node in NODES if place[0] == "pods" else NODES[:1]:
                if place in self.present:
                    self.delete(*place)
                self.create(*place, node)
                if place[0] == "pods":
                    self.patch(*place, {"status": {"phase": "Running"}}, "/status")
                for labels in ({"tier": "a", "zone": "1"}, {"tier": None}):
                    self.relabel(place, labels)


class Model:
    """What happened to a resource after a version, as one watch of everything tells it."""

    def __init__(self, where, resource):
        target = f"/api/v1/{resource}"
        begin = body_of(where, target)
        self.begin = {key_of(item): item for item in begin["items"] if is_ours(item)}
        self.version = int(begin["metadata"]["resourceVersion"])
        self.watch = Watch(where, f"{target}?watch=1&resourceVersion={self.version}")
        self.steps = []  # (version, old, new)

    def read_to(self, version):
        state = dict(self.begin)
        with self.watch:
            while not self.steps or self.steps[-1][0] < version:
                event = self.watch.next()
                item = event["object"]
                new = item if event["type"] != "DELETED" else None
                if is_ours(item):
                    self.steps.append((version_of(item), state.get(key_of(item)), new))
                    state[key_of(item)] = new

    def state_at(self, version, selection):
        state = dict(self.begin)
        for at, old, new in self.steps:
            if at <= version:
                state[key_of(new or old)] = new
        return [state[key] for key in sorted(state, key="/".join) if selection.has(state[key])]

    def events_after(self, version, selection):
        """(type, namespace and name, version)"""
        events = []
        for at, old, new in self.steps:
            was, is_ = selection.has(old), selection.has(new)
            if at > version and (was or is_):
                kind = "DELETED" if not is_ else "MODIFIED" if was else "ADDED"
                events.append((kind, key_of(new or old), at))
        return events


def told(event):
    return event["type"], key_of(event["object"]), version_of(event["object"])


class Observer:
    """A watch of one server; reads it to the end of what the model knows."""

    def __init__(self, where, selection, **parameters):
        self.selection = selection
        self.target = selection.target(watch=1, allowWatchBookmarks="true", **parameters)
        self.watch = Watch(where, self.target)
        self.watch.connection.sock.settimeout(SILENCE)

    def read(self, last):
        """What is not of other tests; each bookmark must have said what is true."""
        events, told_up_to = [], 0
        with self.watch:
            while not events or events[-1]["type"] == "BOOKMARK" or version_of(events[-1]["object"]) < last:
                event = self.watch.next()
                if event is None or event["type"] == "ERROR":
                    raise AssertionError(f"{self.target} ended with {event} behind {events[-1:]}")
                if version_of(event["object"]) < told_up_to:
                    raise AssertionError(f"{self.target}: {event} behind a bookmark of {told_up_to}")
                if event["type"] == "BOOKMARK":
                    told_up_to = version_of(event["object"])
                events.append(event)
        return [event for event in events if event["type"] == "BOOKMARK" or is_ours(event["object"])]


class ServeModelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.seed = int(os.environ.get("KINF_TEST_SEED", random.randrange(1 << 32)))
        cls.rng = random.Random(cls.seed)
        print(f"  KINF_TEST_SEED={cls.seed}")
        for namespace in NAMESPACES:
            cluster().make_namespace(namespace)
        cls.direct = Direct()
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.proxy = cls.enterClassContext(Proxy())
        cls.writer = cls.enterClassContext(contextlib.closing(Writer(cls.direct, cls.rng)))
        for _ in range(20):
            cls.writer.change()
        config = os.path.join(cls.folder, "config.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG)
        cls.served = cls.enterClassContext(
            Served("--config", config, resource=(), kubeconfig=cls.proxy.kubeconfig(cls.folder)))

    def newest(self):
        return int(body_of(self.direct, "/api/v1/pods?limit=1")["metadata"]["resourceVersion"])

    def pair(self, begin):
        """The same watch of both, from a random version since `begin`, or a little ahead."""
        selection = Selection.random(self.rng)
        version = min(self.newest(), self.rng.randint(begin, self.newest() + 30))
        version += self.rng.choice((0, 0, 0, 5))
        return version, [Observer(where, selection, resourceVersion=version) for where in (self.served, self.direct)]

    def initial(self):
        """A watch with the state first, which may have to be of now."""
        selection = Selection.random(self.rng)
        more = {"resourceVersion": self.writer.newest[selection.resource]} if self.rng.random() < 0.5 else {}
        return Observer(self.served, selection, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", **more)

    def check_events(self, models, version, observer):
        with self.subTest(seed=self.seed, version=version, target=observer.target):
            expected = models[observer.selection.resource].events_after(version, observer.selection)
            events = [event for event in observer.read(expected[-1][2]) if event["type"] != "BOOKMARK"]
            self.assertEqual([told(event) for event in events], expected)
            return events

    def check_expired(self, observer):
        """What came and went before the list nobody here knows."""
        with self.subTest(seed=self.seed, target=observer.target), observer.watch:
            event = observer.watch.next()
            self.assertEqual((event["type"], event["object"]["code"]), ("ERROR", 410))

    def check_pair(self, models, version, ours, real):
        theirs = self.check_events(models, version, real)
        self.assertEqual(self.check_events(models, version, ours), theirs)

    def check_initial(self, models, observer):
        selection, model = observer.selection, models[observer.selection.resource]
        with self.subTest(seed=self.seed, target=observer.target):
            events = observer.read(model.events_after(0, selection)[-1][2])
            n_initial = next(i for i, event in enumerate(events) if event["type"] == "BOOKMARK")
            self.assertIn("annotations", events[n_initial]["object"]["metadata"])
            version = version_of(events[n_initial]["object"])
            self.assertEqual([told(event) for event in events[:n_initial]],
                             [("ADDED", key_of(item), version_of(item))
                              for item in model.state_at(version, selection)])
            self.assertEqual([told(event) for event in events[n_initial:] if event["type"] != "BOOKMARK"],
                             model.events_after(version, selection))

    def check_list(self, models, selection, version, items):
        with self.subTest(seed=self.seed, version=version, selection=selection):
            expected = models[selection.resource].state_at(version, selection)
            self.assertEqual([(key_of(item), version_of(item)) for item in items if is_ours(item)],
                             [(key_of(item), version_of(item)) for item in expected])

    def first_page(self):
        selection = Selection.random(self.rng)
        at_least = self.writer.newest[selection.resource]
        body = body_of(self.served, selection.target(resourceVersion=at_least))
        self.assertGreaterEqual(int(body["metadata"]["resourceVersion"]), at_least)
        yield selection, body
        limit = self.rng.choice((1, 2, 3))
        token = ""
        items = []
        while True:
            body = body_of(self.served, selection.target(limit=limit, **({"continue": token} if token else {})))
            items += body["items"]
            token = body["metadata"].get("continue")
            if not token:
                break
            yield None
        yield selection, {**body, "items": items}

    def test_watches_and_lists_tell_what_happened(self):
        models = {resource: Model(self.direct, resource) for resource in RESOURCES}
        begin = self.newest()
        pairs, initials, lists, readers = [], [], [], []
        for i in range(N_CHANGES):
            self.writer.change()
            if i % 8 == 0:
                pairs.append(self.pair(begin))
            if i % 20 == 10:
                initials.append(self.initial())
                readers.append(self.first_page())
            for reader in list(readers):
                page = next(reader, reader)
                if page is reader:
                    readers.remove(reader)
                elif page is not None:
                    lists.append(page)
            if i in (N_CHANGES // 3, N_CHANGES // 2):
                self.proxy.drop()
        self.writer.change_all()
        for resource, model in models.items():
            model.read_to(self.writer.newest[resource])
        for version, (ours, real) in pairs:
            self.check_pair(models, version, ours, real)
        for observer in initials:
            self.check_initial(models, observer)
        for selection, body in lists:
            self.check_list(models, selection, int(body["metadata"]["resourceVersion"]), body["items"])

    def test_what_a_list_has_found_is_told_to_all_who_were_there(self):
        # What happened unseen the daemon has to make up, so its own watch of everything is the model.
        models = {resource: Model(self.served, resource) for resource in RESOURCES}
        observers = [Observer(self.served, selection, resourceVersion=models[selection.resource].version)
                     for selection in (Selection.random(self.rng) for _ in range(12))]
        self.proxy.stall.set()
        for _ in range(N_CHANGES // 4):
            self.writer.change()
        # It does not know any more what happened before.
        cluster().forget()
        self.writer.close()
        self.proxy.drop()
        for resource in RESOURCES:
            self.served.daemon.wait_logged(f"listed resource={resource}", 2)
        self.writer.change_all()
        for resource, model in models.items():
            model.read_to(self.writer.newest[resource])
            versions = [version for version, _, _ in model.steps]
            self.assertEqual(versions, sorted(set(versions)))
            now = [item for item in body_of(self.direct, f"/api/v1/{resource}")["items"] if is_ours(item)]
            self.check_list(models, Selection(resource), versions[-1], now)
        for observer in observers:
            self.check_events(models, models[observer.selection.resource].version, observer)
        for resource, model in models.items():
            listed = int(re.findall(rf"listed resource={resource} .* rv=(\d+)", self.served.daemon.log_text())[-1])
            unseen = [version for version, _, _ in model.steps if version < listed]
            seen = [version for version, _, _ in model.steps[:-1] if version >= listed]
            for version in self.rng.sample(unseen, min(10, len(unseen))):
                self.check_expired(Observer(self.served, Selection(resource), resourceVersion=version))
            for version in self.rng.sample(seen, 10):
                self.check_events(models, version, Observer(self.served, Selection(resource), resourceVersion=version))
            self.assertNotEqual(unseen, [])


if __name__ == "__main__":
    unittest.main()
