"""What integration tests ask of kubectl, without kubectl: its verbs as requests, for machines that have no Go.

Objects are sent as they are written, JSON or YAML, so that the server reads them; of YAML this module finds out where to
send it, and no more. `apply` is server-side apply, which ends with the same objects as kubectl's own.
"""

import json
import re
import time
import urllib.parse

from harness import PATIENCE

VERSION_PATHS = re.compile(r"^/api(/v1|s/[^/]+/[^/]+)$")
FLAGS_WITHOUT_VALUE = {"-A", "--all", "--ignore-not-found", "--no-headers", "--overwrite", "--server-side"}
SHORT_FLAGS = {"-n": "--namespace", "-f": "--filename", "-o": "--output", "-l": "--selector"}
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


class Refused(Exception):
    """What the server said instead of doing it."""

    def __init__(self, status, body):
        self.status = status
        try:
            text = json.loads(body)["message"]
        except (ValueError, KeyError, TypeError):
            text = body.decode(errors="replace")
        super().__init__(f"{status} {text}")


class Resource:
    """A resource as discovery tells of it."""

    def __init__(self, path, described):
        self.path = path  # "/apis/apps/v1"
        self.plural = described["name"]
        self.kind = described["kind"]
        self.is_namespaced = described["namespaced"]
        self.verbs = described["verbs"]
        self.short_names = described.get("shortNames", [])
        self.group_version = path.partition("/")[2].partition("/")[2]
        self.group = self.group_version.rpartition("/")[0]
        self.names = {self.plural, described.get("singularName", ""), self.kind.lower(), *self.short_names}

    def is_called(self, spelling):
        name, _, group = spelling.lower().partition(".")
        return name in self.names and group in ("", self.group)

    def target(self, namespace, name=None):
        inside = f"/namespaces/{namespace}" if self.is_namespaced and namespace else ""
        return f"{self.path}{inside}/{self.plural}" + (f"/{urllib.parse.quote(name, safe='')}" if name else "")


class Manifest:
    """One object to send, and what it says of itself."""

    def __init__(self, text):
        self.text = text
        if text.lstrip().startswith("{"):
            item = json.loads(text)
            metadata = item.get("metadata") or {}
            found = item["apiVersion"], item["kind"], metadata.get("name"), metadata.get("namespace")
        else:
            block = re.search(r"^metadata:(.*\n(?:[ #].*\n|\n)*)", text + "\n", re.MULTILINE).group(1)
            found = (first(r"^apiVersion: *(\S+)", text), first(r"^kind: *(\S+)", text),
                     first(r"(?:^ *|[{,] *)name: *([^\s,}]+)", block), first(r"(?:^ *|[{,] *)namespace: *([^\s,}]+)", block))
        self.api_version, self.kind, self.name, self.namespace = found
        self.type = "application/json" if text.lstrip().startswith("{") else "application/yaml"


def first(pattern, text):
    found = re.search(pattern, text, re.MULTILINE)
    return found and found.group(1)


def read_manifests(text):
    """The documents of a text; the items of a List are documents, too."""
    for document in re.split(r"^---.*\n", text, flags=re.MULTILINE):
        if not re.sub(r"^\s*(#.*)?$", "", document, flags=re.MULTILINE):
            continue
        if document.lstrip().startswith("{") and (items := json.loads(document)).get("kind") == "List":
            yield from (Manifest(json.dumps(item)) for item in items["items"])
        else:
            yield Manifest(document)


class Call:
    """A command line, taken apart."""

    def __init__(self, args, stdin):
        self.stdin = stdin
        self.words = []
        self.flags = {}
        args = iter(args)
        for arg in args:
            if not arg.startswith("-") or arg == "-":
                self.words.append(arg)
                continue
            name, has_value, value = arg.partition("=")
            if not has_value and name not in FLAGS_WITHOUT_VALUE:
                value = next(args)
            self.flags[SHORT_FLAGS.get(name, name)] = value if has_value else (value or "true")

    def get(self, flag, default=None):
        return self.flags.get("--" + flag, default)

    def has(self, flag):
        return self.get(flag, "false") != "false"

    def namespace(self):
        return None if "-A" in self.flags else self.get("namespace", "default")

    def manifests(self):
        name = self.get("filename")
        if name == "-":
            return list(read_manifests(self.stdin))
        with open(name, encoding="utf-8") as file:
            return list(read_manifests(file.read()))

    def deadline(self):
        return time.monotonic() + float(self.get("timeout", "30s").rstrip("s"))


class SmallKubectl:
    """`connect` makes a connection to the server, as http.client has them, which says who asks."""

    def __init__(self, connect):
        self.connect = connect
        self.connection = None
        self.resources = []

    def run(self, *args, stdin=None):
        """What kubectl would print. Raises AssertionError where it would fail."""
        call = Call(args, stdin)
        verb = call.words.pop(0).replace("-", "_")
        try:
            return getattr(self, "do_" + verb)(call)
        except Refused as problem:
            raise AssertionError(f"kubectl {' '.join(args)}: {problem}") from None
        finally:
            if self.connection is not None:
                self.connection.close()
                self.connection = None

    # --- requests ---

    def ask(self, method, target, body=None, kind="application/json", **query):
        """The body of the answer. One connection serves a command."""
        if query:
            target += ("&" if "?" in target else "?") + urllib.parse.urlencode(query)
        if self.connection is None:
            self.connection = self.connect()
        if isinstance(body, dict):
            body = json.dumps(body)
        self.connection.request(method, target, body=body and body.encode(), headers={"Content-Type": kind} if body else {})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise Refused(answer.status, text)
        return text

    def read(self, target, **query):
        return json.loads(self.ask("GET", target, **query))

    # --- names ---

    def discover(self):
        paths = ["/api/v1"] + ["/apis/" + group["preferredVersion"]["groupVersion"]
                               for group in self.read("/apis")["groups"]]
        self.resources = [Resource(path, described) for path in paths for described in self.read(path)["resources"]
                          if "/" not in described["name"]]

    def find(self, is_meant, what):
        """What is not known may be new."""
        for _ in range(2):
            found = next(filter(is_meant, self.resources), None)
            if found is not None:
                return found
            self.discover()
        raise Refused(404, f"the server has no {what}".encode())

    def called(self, spelling):
        return self.find(lambda resource: resource.is_called(spelling), spelling)

    def of_manifest(self, manifest):
        def is_meant(resource):
            return (resource.group_version, resource.kind) == (manifest.api_version, manifest.kind)
        try:
            return self.find(is_meant, manifest.kind)
        except Refused:
            # Of a version that is not preferred.
            path = "/api/v1" if manifest.api_version == "v1" else "/apis/" + manifest.api_version
            for described in self.read(path)["resources"]:
                if described["kind"] == manifest.kind and "/" not in described["name"]:
                    return Resource(path, described)
            raise

    def named(self, call):
        """(resource, name) of each object that is named: KIND NAME..., KIND/NAME..., or KIND,KIND NAME... ."""
        if "/" in call.words[0]:
            return [(self.called(kind), name) for kind, name in (word.split("/", 1) for word in call.words)]
        return [(self.called(kind), name.rpartition("/")[2]) for kind in call.words[0].split(",")
                for name in call.words[1:]]

    # --- verbs ---

    def do_create(self, call):
        if "--filename" not in call.flags:
            return self.create_from_words(call)
        for manifest in call.manifests():
            target = self.of_manifest(manifest).target(manifest.namespace or call.namespace())
            self.ask("POST", target, manifest.text, manifest.type, fieldManager="kubectl-create",
                     fieldValidation="Strict" if call.get("validate") != "false" else "Ignore")
        return "created\n"

    def create_from_words(self, call):
        kind, *words = call.words
        resource = self.called(kind)
        item = {"apiVersion": resource.group_version, "kind": resource.kind, "metadata": {"name": words[-1]}}
        if (literal := call.get("from-literal")) is not None:
            key, _, value = literal.partition("=")
            item["stringData" if resource.plural == "secrets" else "data"] = {key: value}
        self.ask("POST", resource.target(call.namespace()), item, fieldManager="kubectl-create")
        return "created\n"

    def do_apply(self, call):
        query = {"dryRun": "All"} if call.get("dry-run") == "server" else {}
        answers = []
        for manifest in call.manifests():
            target = self.of_manifest(manifest).target(manifest.namespace or call.namespace(), manifest.name)
            answers.append(json.loads(self.ask("PATCH", target, manifest.text, APPLY, fieldManager="kubectl",
                                               force="true", **query)))
        if call.get("output") != "json":
            return "applied\n"
        return json.dumps(answers[0] if len(answers) == 1 else {"apiVersion": "v1", "kind": "List", "items": answers})

    def do_delete(self, call):
        if "--filename" in call.flags:
            items = [(self.of_manifest(manifest), manifest.namespace or call.namespace(), manifest.name)
                     for manifest in call.manifests()]
        elif call.has("all"):
            [kind] = call.words
            resource = self.called(kind)
            items = [(resource, call.namespace(), item["metadata"]["name"])
                     for item in self.read(resource.target(call.namespace()))["items"]]
        else:
            items = [(resource, call.namespace(), name) for resource, name in self.named(call)]
        deleted = [(resource.target(namespace, name), self.delete(call, resource.target(namespace, name)))
                   for resource, namespace, name in items]
        if call.get("wait") != "false":
            for target, uid in deleted:
                self.wait_for(call, lambda target=target, uid=uid: self.has_gone(target, uid), f"{target} has gone")
        return "deleted\n"

    def delete(self, call, target):
        """The uid of what is deleted."""
        try:
            answer = json.loads(self.ask("DELETE", target, {"apiVersion": "v1", "kind": "DeleteOptions",
                                                            "propagationPolicy": "Background"}))
        except Refused as problem:
            if problem.status == 404 and call.has("ignore-not-found"):
                return None
            raise
        return (answer.get("details") or answer["metadata"]).get("uid")

    def has_gone(self, target, uid):
        try:
            return self.read(target)["metadata"]["uid"] != uid
        except Refused as problem:
            if problem.status == 404:
                return True
            raise

    def wait_for(self, call, condition, what):
        deadline = call.deadline() if call.get("timeout") else time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise Refused(0, f"timed out: {what}".encode())
            time.sleep(0.02)

    def do_wait(self, call):
        [(resource, name)] = self.named(call)
        wanted = call.get("for")
        target = resource.target(call.namespace(), name)
        if wanted == "delete":
            self.wait_for(call, lambda: self.has_gone(target, None), f"{target} has gone")
            return "gone\n"
        wanted = wanted.removeprefix("condition=").lower()

        def is_met():
            return any(condition["type"].lower() == wanted and condition["status"] == "True"
                       for condition in self.read(target).get("status", {}).get("conditions", []))
        self.wait_for(call, is_met, f"{wanted} of {target}")
        return "condition met\n"

    def do_get(self, call):
        if call.get("raw"):
            return self.ask("GET", call.get("raw")).decode()
        resource = self.called(call.words[0])
        target = resource.target(call.namespace(), *call.words[1:])
        selector = {"labelSelector": call.get("selector")} if call.get("selector") else {}
        text = self.ask("GET", target, **selector).decode()
        if call.get("output") != "name":
            return text
        prefix = resource.plural if not resource.group else f"{resource.plural}.{resource.group}"
        singular = prefix.replace(resource.plural, resource.kind.lower(), 1)
        return "".join(f"{singular}/{item['metadata']['name']}\n" for item in json.loads(text)["items"])

    def change(self, call, key):
        """label and annotate: NAME... and what to set, key=value, or to remove, key-."""
        pairs = [word for word in call.words[1:] if "=" in word or word.endswith("-")]
        call.words = [word for word in call.words if word not in pairs]
        values = {name: value for name, _, value in (pair.partition("=") for pair in pairs if "=" in pair)}
        values |= {pair[:-1]: None for pair in pairs if "=" not in pair}
        for resource, name in self.named(call):
            self.ask("PATCH", resource.target(call.namespace(), name), {"metadata": {key: values}}, MERGE,
                     fieldManager="kubectl-" + key)
        return "changed\n"

    def do_label(self, call):
        return self.change(call, "labels")

    def do_annotate(self, call):
        return self.change(call, "annotations")

    def do_patch(self, call):
        [(resource, name)] = self.named(call)
        kinds = {"merge": MERGE, "json": "application/json-patch+json"}
        return self.ask("PATCH", resource.target(call.namespace(), name), call.get("patch"),
                        kinds.get(call.get("type"), "application/strategic-merge-patch+json")).decode()

    def do_api_resources(self, call):
        """NAME SHORTNAMES APIVERSION NAMESPACED KIND, without headers."""
        self.discover()
        verbs = set(filter(None, call.get("verbs", "").split(",")))
        return "".join(" ".join(filter(None, (resource.plural, ",".join(resource.short_names), resource.group_version,
                                              str(resource.is_namespaced).lower(), resource.kind))) + "\n"
                       for resource in self.resources if verbs <= set(resource.verbs))
