#!/usr/bin/env python3
"""Prints tests/COVERAGE.md from what gcovr says in JSON (standard input): lines and branches of src/ by folder, and which
lines of the folders that promise a share none of those tests runs. The arguments are the integration tests that were run."""

import collections
import itertools
import json
import sys

PROMISED = ["deltafifo", "indexer", "informer", "json", "reflector", "serve", "watchcache"]
SHARE = 95
HEAD = f"""# Coverage

Lines and branches of `src/` that tests run, by folder: what `make coverage` measured, without optimisation, of the unit tests and
of kinformerd on kinformer-sim in these integration tests: {", ".join(sys.argv[1:])}.
{SHARE} % of the lines are promised of {", ".join(PROMISED)}. Branches are the compiler's: both ways out of each
condition, each part of `&&` and `||` counted for itself. What a process did that was killed, or that called `_exit()`, is not seen.

| folder | lines | of these run | % | branches | of these run | % |
|---|---|---|---|---|---|---|
"""


def row(name, lines, branches):
    """Of each a list of whether it was run."""
    def counts(run):
        return f"{len(run)} | {sum(run)} | {100 * sum(run) / max(len(run), 1):.1f}"
    return f"| {name} | {counts(lines)} | {counts(branches)} |"


def ranges(numbers):
    """[3, 4, 5, 9] as 3-5, 9."""
    for _, group in itertools.groupby(enumerate(sorted(numbers)), lambda item: item[1] - item[0]):
        group = [number for _, number in group]
        yield f"{group[0]}-{group[-1]}" if len(group) > 1 else f"{group[0]}"


def main():
    lines, branches, missing = collections.defaultdict(list), collections.defaultdict(list), collections.defaultdict(dict)
    for file in json.load(sys.stdin)["files"]:
        folder = file["file"].split("/")[1]
        counted = [line for line in file["lines"] if not line.get("gcovr/noncode")]
        lines[folder] += [line["count"] > 0 for line in counted]
        branches[folder] += [branch["count"] > 0 for line in counted for branch in line["branches"]]
        missing[folder][file["file"]] = [line["line_number"] for line in counted if line["count"] == 0]
    print(HEAD, end="")
    for folder in sorted(lines):
        print(row(folder, lines[folder], branches[folder]))
    print(row("all", sum(lines.values(), []), sum(branches.values(), [])))
    print("\n## Lines that none of these tests runs\n")
    for folder in PROMISED:
        for name, numbers in sorted(missing[folder].items()):
            if numbers:
                print(f"- `{name}`: {', '.join(ranges(numbers))}")


main()
