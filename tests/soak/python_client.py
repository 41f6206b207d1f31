"""Pods by the Python client: a list, and watches from where the last one ended. python_client.py KUBECONFIG"""

import sys
import time

import urllib3
from kubernetes import client, config, watch


def follow(core, say):
    items = core.list_pod_for_all_namespaces(_request_timeout=30)
    say("RESET")
    for item in items.items:
        say("ADDED", item)
    version = items.metadata.resource_version
    while True:
        for event in watch.Watch().stream(core.list_pod_for_all_namespaces, resource_version=version, timeout_seconds=10,
                                          _request_timeout=30):
            say(event["type"], event["object"])
            version = event["object"].metadata.resource_version


def say(kind, pod=None):
    metadata = pod.metadata if pod else None
    print(kind, *([f"{metadata.namespace}/{metadata.name}", metadata.resource_version] if pod else []), flush=True)


def main(kubeconfig):
    core = client.CoreV1Api(config.new_client_from_config(kubeconfig))
    while True:
        try:
            follow(core, say)
        except (client.exceptions.ApiException, urllib3.exceptions.HTTPError, OSError, ValueError):
            time.sleep(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
