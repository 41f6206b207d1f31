"""How a suite of requests is written: steps, answers, and scenarios made of them."""

import json
from dataclasses import dataclass, field
from typing import Callable, NamedTuple
from urllib.parse import quote


class Answer(NamedTuple):
    status: int
    headers: object
    body: object

    def at(self, *path):
        """What the body has there; None if it has nothing."""
        value = self.body
        for name in path:
            try:
                value = value[name]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    @property
    def version(self):
        return self.at("metadata", "resourceVersion")

    @property
    def uid(self):
        return self.at("metadata", "uid")

    def changed(self, *patches):
        """The object with (path, value) set; a value of None removes. Of a refusal nothing is taken."""
        return changed(self.body if self.status < 300 and isinstance(self.body, dict) else {}, *patches)


def changed(tree, *patches):
    tree = json.loads(json.dumps(tree))
    for path, value in patches:
        *parents, last = path.split(".")
        node = tree
        for name in parents:
            node = node.setdefault(name, {}) if isinstance(node, dict) else node[int(name)]
        if value is None:
            node.pop(last, None)
        else:
            node[last] = value
    return tree


@dataclass
class Step:
    name: str
    method: str
    target: str
    content: bytes = None
    headers: dict = field(default_factory=dict)
    until: Callable = None  # asked again until the answer says so
    n_events: int = None  # a watch: how many of its events are compared
    look: Callable = None  # what of the body, an object, is compared
    generates: str = None  # a prefix of generated names

    def __post_init__(self):
        self.headers = {"User-Agent": "suite/1.0", "Accept": "application/json", **self.headers}


@dataclass
class Scenario:
    row: str
    run: Callable

    @property
    def name(self):
        """Of the namespace."""
        return "s-" + self.row.replace(".", "-")


# --- how requests are written ---

JSON = "application/json"
YAML = "application/yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def where(version, resource, namespace="", *rest, **query):
    """The path of a list, an object or a subresource."""
    root = "/api/" if "/" not in version else "/apis/"
    parts = [root + version, *(["namespaces", namespace] if namespace else []), resource, *rest]
    return "/".join(parts) + ("?" + "&".join(f"{k}={quote(str(v))}" for k, v in query.items()) if query else "")


def encoded(body):
    if body is None or isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def get(name, target, accept=JSON, **more):
    return Step(name, "GET", target, headers={"Accept": accept}, **more)


def post(name, target, body, kind=JSON, accept=JSON, **more):
    return Step(name, "POST", target, encoded(body), {"Content-Type": kind, "Accept": accept}, **more)


def put(name, target, body, kind=JSON):
    return Step(name, "PUT", target, encoded(body), {"Content-Type": kind})


def delete(name, target, body=None, kind=JSON, **more):
    return Step(name, "DELETE", target, encoded(body), {} if body is None else {"Content-Type": kind}, **more)


def patch(name, target, body, kind, accept=JSON):
    return Step(name, "PATCH", target, encoded(body), {"Content-Type": kind, "Accept": accept})


def json_patch(name, target, *operations):
    return patch(name, target, list(operations), "application/json-patch+json")


def merge(name, target, body, **more):
    return patch(name, target, body, "application/merge-patch+json", **more)


def strategic(name, target, body, **more):
    return patch(name, target, body, "application/strategic-merge-patch+json", **more)


def apply(name, target, body, manager="one", more=""):
    return patch(name, f"{target}?fieldManager={manager}{more}", body, "application/apply-patch+yaml")


def watch(name, target, n_events, accept=JSON, seconds=20):
    return Step(name, "GET", f"{target}&timeoutSeconds={seconds}", headers={"Accept": accept}, n_events=n_events)


def op(kind, path, value=..., **more):
    return {"op": kind, "path": path, **({} if value is ... else {"value": value}), **more}


def thing(version, kind, name, **more):
    metadata = {"name": name, **more.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def made(namespace):
    """The namespace of a scenario."""
    return post(None, "/api/v1/namespaces", thing("v1", "Namespace", namespace))
