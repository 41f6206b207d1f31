"""Writes and reads config maps through one server, in pairs, and counts reads that do not show the write before them:
session.py URL TOKEN NAMESPACE PAIRS. Prints {"pairs": N, "stale": M, "first": "..."}."""

import json
import sys

import urllib3
from kubernetes import client


def main(server, token, namespace, n_pairs):
    urllib3.disable_warnings()
    configuration = client.Configuration()
    configuration.host, configuration.verify_ssl = server, False
    configuration.api_key = {"authorization": "Bearer " + token}
    core = client.CoreV1Api(client.ApiClient(configuration))
    result = {"pairs": 0, "stale": 0, "first": ""}

    def seen(is_seen, what):
        result["pairs"] += 1
        if not is_seen:
            result["stale"] += 1
            result["first"] = result["first"] or what

    def values():
        return [item.data["value"] for item in core.list_namespaced_config_map(
            namespace, label_selector="worker=python").items]

    for i in range(n_pairs // 4):
        name = f"python-{i}"
        made = core.create_namespaced_config_map(namespace, client.V1ConfigMap(
            metadata=client.V1ObjectMeta(name=name, labels={"worker": "python"}), data={"value": "one"}))
        seen(values() == ["one"], f"created {name}")
        core.patch_namespaced_config_map(name, namespace, {"data": {"value": "two"}})
        seen(core.read_namespaced_config_map(name, namespace).data["value"] == "two", f"patched {name}")
        made.data, made.metadata.resource_version = {"value": "three"}, None
        core.replace_namespaced_config_map(name, namespace, made)
        seen(values() == ["three"], f"replaced {name}")
        core.delete_namespaced_config_map(name, namespace)
        seen(values() == [], f"deleted {name}")
    print(json.dumps(result))


main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
