#!/usr/bin/env python3
"""A handler of kinformerd: it knows all pods, and says how many there are on each node.

    kinformerd --resource pods --exec examples/exec-handler/handler.py
"""

import collections
import json
import sys

pods = {}
for line in sys.stdin:
    event = json.loads(line)
    match event["type"]:
        case "RESET":  # what comes now is everything
            pods.clear()
        case "ADDED" | "MODIFIED":
            pods[event["key"]] = event["object"]
        case "DELETED":
            pods.pop(event["key"], None)
    if not event.get("initial"):
        count = collections.Counter(pod["spec"].get("nodeName", "none") for pod in pods.values())
        print(*(f"{node}={n}" for node, n in sorted(count.items())), file=sys.stderr)
    if "seq" in event:  # acknowledge: true
        print(json.dumps({"ack": event["seq"]}), flush=True)
