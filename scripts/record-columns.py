#!/usr/bin/env python3
"""Records src/table/columns.inc, the columns of the Tables of all built-in types, from a kube-apiserver.

    tests/cluster/cluster.sh start DIR
    scripts/record-columns.py DIR/admin.kubeconfig
    tests/cluster/cluster.sh stop DIR

What stands in the cells, src/table/table.c says. tests/integration/test_serve_tables.py compares both.
"""

import importlib
import json
import os
import sys

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;g=meta.k8s.io;v=v1;as=Table"
# Columns that most types have: the macro of each, by its name.
SHARED = {"Name": "NAME_COLUMN", "Age": "AGE_COLUMN", "Created At": "CREATED_COLUMN"}


def types_of(server):
    """(group, resource, path) of what can be watched; of several versions the preferred one."""
    for root in ("/api", "/apis"):
        for group in server.ask(root, accept=DISCOVERY)["items"]:
            name = group["metadata"].get("name", "")
            version = group["versions"][0]
            for entry in version["resources"]:
                if "watch" in entry["verbs"]:
                    yield name, entry["resource"], "/".join(filter(None, [root, name, version["version"],
                                                                          entry["resource"]]))


def quoted(column):
    """A definition as Go writes it, as a string of C."""
    text = json.dumps(column, ensure_ascii=False, separators=(",", ":"))
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    server = importlib.import_module("record-schema").Server(sys.argv[1])
    shared, macros, names = {}, [], set()
    # Custom resources whose definitions have no columns say an age that is a date.
    custom = '#define REST "", "", "[" NAME_COLUMN "," \\\n    %s "]"\n'
    for group, resource, path in types_of(server):
        columns = []
        for column in server.ask(path, accept=TABLE)["columnDefinitions"]:
            text = quoted(column)
            if column["name"] == "Age" and "%" in custom:
                custom %= quoted({**column, "type": "date"})
            macro = SHARED.get(column["name"])
            columns.append(macro if macro and shared.setdefault(macro, text) == text else text)
        name = resource.upper() if resource not in names else f"{group.split('.')[0]}_{resource}".upper()
        names.add(resource)
        body = ' "," \\\n'.join("    " + column for column in columns)
        macros.append(f'#define {name} "{group}", "{resource}", "[" \\\n{body} "]"\n')
    with open(os.path.join(root, "src", "table", "columns.inc"), "w", encoding="utf-8") as file:
        file.write(f"/* Recorded from kube-apiserver {server.ask('/version')['gitVersion']} by "
                   "scripts/record-columns.py; table.c includes it. */\n")
        file.writelines(f"#define {macro} \\\n    {text}\n" for macro, text in shared.items())
        file.writelines([*macros, custom])


if __name__ == "__main__":
    main()
