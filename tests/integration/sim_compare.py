"""Answers of two servers, made comparable, compared, and the differences that are allowed.

What a server generates is replaced by what it means: a uid or a resourceVersion by the row that showed it first,
a time by its distance from now, an address by its kind. So a version that should not have changed still shows as
another one, and one that is not greater than all before it says so.
"""

import datetime
import fnmatch
import json
import re

ABSENT = "(absent)"

# Not those that rows send, which begin with zeros.
UID = re.compile(r"(?!0{8})[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")
SERVICE_IP = re.compile(r"\b10\.0\.\d{1,3}\.\d{1,3}\b")
# Versions that messages quote.
QUOTED_VERSION = re.compile(
    r"""(in (?:the precondition \(|record \(|object meta: )|current: |resourceVersion\\?"?: ?\\?")\d+""")
AGE = re.compile(r"\d{1,2}s")
HEADERS = ("Content-Type", "Warning", "Retry-After", "Allow")

# How far a clock reading may be from when it was asked for; the servers are slow when the machine is busy.
SLACK_SECONDS = 8


class Labels:
    """What one server has generated during one scenario, and what it is called."""

    def __init__(self, now):
        self.began = now
        self.uids = {}
        self.versions = {}
        self.newest = 0
        self.prefixes = []  # of generated names

    def uid(self, uid, row):
        return self.uids.setdefault(uid, self._new(self.uids, "uid", row))

    def version(self, version, row):
        """Of an object. `row` shows it now, and has shown it first unless it is known."""
        if not version.isdigit() or version.startswith("0"):
            return f"<no version: {version}>"
        if version not in self.versions:
            label = self._new(self.versions, "version", row)
            self.versions[version] = label if int(version) > self.newest else label + " not risen"
        return self.versions[version]

    def list_version(self, version):
        """Of a list or a bookmark: whatever else the server stores counts, too, so it is called by what it shows."""
        known = list(map(int, self.versions))
        if version.isdigit() and int(version) >= max([self.newest, *known]):
            return "<version of now>"
        shown = [other for other in known if version.isdigit() and other <= int(version)]
        return self.versions[str(max(shown))] if shown else "<an old version>"

    def end_row(self):
        self.newest = max([self.newest, *map(int, self.versions)])

    def time(self, text, now):
        then = datetime.datetime.fromisoformat(text).timestamp()
        form = "micro time" if "." in text else "time"
        if self.began - SLACK_SECONDS <= then <= now + SLACK_SECONDS:
            return f"<{form}>"
        if now < then < now + 1000:
            return f"<{form} in {round((then - now) / 10) * 10} s>"
        return text

    @staticmethod
    def _new(known, what, row):
        n = sum(label.startswith(f"<{what} of {row}>") for label in known.values())
        return f"<{what} of {row}>" + (f" {n + 1}" if n else "")


class Masker:
    def __init__(self, labels, row, now):
        self.labels = labels
        self.row = row
        self.now = now

    def text(self, text):
        text = TIME.sub(lambda match: self.labels.time(match[0], self.now), text)
        text = UID.sub(lambda match: self.labels.uid(match[0], self.row), text)
        text = QUOTED_VERSION.sub(r"\1N", text)
        text = SERVICE_IP.sub("<service ip>", text)
        for prefix in self.labels.prefixes:
            text = re.sub(re.escape(prefix) + r"[bcdfghjklmnpqrstvwxz2456789]{5}\b", prefix + "<suffix>", text)
        return text

    def managed(self, entries):
        """In an order that does not depend on whether a second has passed between two writes."""
        def key(entry):
            return [str(entry.get(name)) for name in ("operation", "manager", "apiVersion", "subresource")]
        return sorted(entries, key=key) if all(isinstance(entry, dict) for entry in entries) else entries

    def value(self, value, name="", parent=""):
        if isinstance(value, dict):
            return self.members(value, name)
        if isinstance(value, list):
            return [self.value(item, name) for item in (self.managed(value) if name == "managedFields" else value)]
        if isinstance(value, str) and value != "":
            return self.special(value, name, parent)
        if name in ("nodePort", "healthCheckNodePort") and isinstance(value, int) and 30000 <= value < 32768:
            return "<node port>"
        return value

    def events(self, events):
        """What is history already has to rise from event to event only."""
        masked = []
        self.labels.newest = 0
        for event in events:
            masked.append(self.value(event))
            version = str(event.get("object", {}).get("metadata", {}).get("resourceVersion"))
            self.labels.newest = int(version) if version.isdigit() else 0
        return masked

    def members(self, value, name):
        """A bookmark speaks of now, as a list does, and its object has no version of its own."""
        is_list = name != "object" and any(isinstance(value.get(key), list) for key in ("items", "rows"))
        names = {"metadata": "metadata of now"} if is_list or name == "bookmark" else {}
        if value.get("type") == "BOOKMARK":
            names["object"] = "bookmark"
        return {self.text(key): self.value(value[key], names.get(key, key), name) for key in sorted(value)}

    def special(self, text, name, parent):
        if name == "resourceVersion" and parent == "metadata":
            return self.labels.version(text, self.row)
        if name == "resourceVersion" and parent == "metadata of now":
            return self.labels.list_version(text)
        if name == "cells" and AGE.fullmatch(text):
            return "<age>"
        if name == "continue":
            return "<token>"
        if name == "storageVersionHash":
            return "<hash>"
        if name == "serverRelativeURL":
            return re.sub(r"hash=\w+", "hash=<hash>", text)
        return self.text(text)


def is_stream(body):
    return isinstance(body, list) and all(isinstance(event, dict) and "type" in event for event in body)


def parse(content, has_lines):
    """JSON as such, a stream as the list of its events, all else as text."""
    text = content.decode("utf-8", "replace").strip()
    if text == "":
        return None
    try:
        return [json.loads(line) for line in text.splitlines()] if has_lines else json.loads(text)
    except ValueError:
        return text


def mask(answer, labels, row, now):
    """The answer as it is compared: {"status", "header", "body"}."""
    masker = Masker(labels, row, now)
    body = masker.events(answer.body) if is_stream(answer.body) else masker.value(answer.body)
    labels.end_row()
    headers = {name: [masker.text(value) for value in answer.headers.get_all(name)] for name in HEADERS
               if answer.headers.get_all(name)}
    return {"status": answer.status, "header": headers, "body": body}


def differences(real, ours, path=""):
    """[(path, real, ours)]: the smallest parts that are not the same."""
    if isinstance(real, dict) and isinstance(ours, dict):
        found = []
        for name in sorted({*real, *ours}):
            found += differences(real.get(name, ABSENT), ours.get(name, ABSENT), f"{path}.{name}" if path else name)
        return found
    if isinstance(real, list) and isinstance(ours, list):
        found = []
        for i in range(max(len(real), len(ours))):
            found += differences(real[i] if i < len(real) else ABSENT, ours[i] if i < len(ours) else ABSENT,
                                 f"{path}[{i}]")
        return found
    if type(real) is type(ours) and real == ours:
        return []
    return [(path, real, ours)]


class Allowed:
    """The table of a document of differences: `row pattern` and `path pattern` in its first two columns, where `*`
    stands for anything, and all else for itself."""

    ROW = re.compile(r"\|\s*`([^`]+)`\s*\|\s*`([^`]+)`\s*\|")

    def __init__(self, path):
        self.entries = []
        self.used = set()
        with open(path, encoding="utf-8") as file:
            for line in file:
                if match := self.ROW.match(line):
                    self.entries.append((match[1], match[2]))

    @staticmethod
    def matches(pattern, text):
        return fnmatch.fnmatchcase(text, re.sub(r"([\[?])", r"[\1]", pattern))

    def allows(self, row, path):
        """All entries that do are used: which of them is first must not matter."""
        found = [entry for entry in self.entries if self.matches(entry[0], row) and self.matches(entry[1], path)]
        self.used.update(found)
        return bool(found)

    def unused(self, rows):
        """Those that could have been used by the rows that were run, and were not."""
        return [entry for entry in self.entries
                if entry not in self.used and any(self.matches(entry[0], row) for row in rows)]
