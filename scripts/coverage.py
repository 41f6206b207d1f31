#!/usr/bin/env python3
"""Prints tests/COVERAGE.md from what gcovr says in JSON (standard input): lines and branches of src/ by folder, and which
lines of the folders that promise a share none of those tests runs, sorted by why. The arguments are the integration tests
that were run on the real server, beside most of them on kinformer-sim. The exit status is 1 when nothing says of a line why
it is not run: neither what stands there, nor a comment `untested: ...` in it, in one of those beside it that are not run,
or in the line before these."""

import collections
import itertools
import json
import re
import sys

PROMISED = ["deltafifo", "indexer", "informer", "json", "reflector", "serve", "watchcache"]
SHARE = 95
HEAD = f"""# Coverage

Lines and branches of `src/` that tests run, by folder: what `make coverage` measured, without optimisation, of the unit tests, of
kinformerd and kinformer-sim in the integration tests, and on a real kube-apiserver in {", ".join(sys.argv[1:])}.
{SHARE} % of the lines are promised of {", ".join(PROMISED)}. Branches are the compiler's: both ways out of each
condition, each part of `&&` and `||` counted for itself. What a process did that was killed, or that called `_exit()`, is not seen.

| folder | lines | of these run | % | branches | of these run | % |
|---|---|---|---|---|---|---|
"""
# Why lines are not run, by what stands there: (line, its function, why). The first that fits.
REASONS = [
    (r"NO_MEMORY|no_memory|no memory|out_of_memory", "",
     "The answer to a failed allocation: sweeps make each fail on the ways of their programs (`test_swept_library`, `test_swept_server`); "
     "these are on ways beside them, or allocated by a library that cannot be made to fail"),
    (r"_errno\(|KINF_ERR_SYSTEM", "", "What the kernel refuses: descriptors, epoll, signals; `test_bad_calls` refuses calls of sockets alone"),
    (r'return (false|".*");', r"(is_sound|_check)$|^(covers|check$|check_(?!config_key))|wrong",
     "A model's question whether all is in order, which no test has answered by no"),
]
BESIDE = "What a comment beside the code says why"
OTHERS = "The others, of which nothing says why"
COMMENT = re.compile(r"/\* untested: (.*?) \*/", re.S)
# `kinf__x(` at the beginning of a function's head, which has no indentation.
FUNCTION = re.compile(r"^(?![#/}\s])[\w\s*]*?(\w+)\(")


def row(name, lines, branches):
    """Of each a list of whether it was run."""
    def counts(run):
        return f"{len(run)} | {sum(run)} | {100 * sum(run) / max(len(run), 1):.1f}"
    return f"| {name} | {counts(lines)} | {counts(branches)} |"


def runs(numbers):
    """[3, 4, 5, 9] as (3, 5), (9, 9)."""
    for _, group in itertools.groupby(enumerate(sorted(numbers)), lambda item: item[1] - item[0]):
        group = [number for _, number in group]
        yield group[0], group[-1]


def text_of(run):
    return f"{run[0]}" if run[0] == run[1] else f"{run[0]}-{run[1]}"


def function_of(source, number):
    """The name of the function that a line is in."""
    for line in reversed(source[:number]):
        if match := FUNCTION.match(line):
            return match[1]
    return ""


def reason_of(source, number):
    """What a failed call is answered with may be in the next line."""
    text, function = " ".join(source[number - 1:number + 1]), function_of(source, number)
    for words, place, reason in REASONS:
        if re.search(words, text) and re.search(place, function):
            return reason
    return OTHERS


def print_missing(missing):
    """`missing`: {file: [line]}. Returns how many have no reason."""
    by_reason = collections.defaultdict(lambda: collections.defaultdict(list))
    beside, n_beside = [], 0
    for name, numbers in sorted(missing.items()):
        with open(name, encoding="utf-8") as file:
            source = file.read().split("\n")
        for run in runs(numbers):
            if said := COMMENT.search("\n".join(source[run[0] - 2:run[1]])):
                beside.append(f"- `{name}`: {text_of(run)}: {' '.join(said[1].split())}")
                n_beside += run[1] - run[0] + 1
                continue
            for number in range(run[0], run[1] + 1):
                by_reason[reason_of(source, number)][name].append(number)
    print("\n## Lines that none of these tests runs")
    for reason in [*(reason for _, _, reason in REASONS), OTHERS]:
        files = by_reason[reason]
        print(f"\n{reason} ({sum(map(len, files.values()))}):\n")
        for name, numbers in files.items():
            print(f"- `{name}`: {', '.join(map(text_of, runs(numbers)))}")
    print(f"\n{BESIDE} ({n_beside}):\n")
    print("\n".join(beside))
    return sum(map(len, by_reason[OTHERS].values()))


def main():
    lines, branches, missing = collections.defaultdict(list), collections.defaultdict(list), {}
    for file in json.load(sys.stdin)["files"]:
        folder = file["file"].split("/")[1]
        counted = [line for line in file["lines"] if not line.get("gcovr/noncode")]
        lines[folder] += [line["count"] > 0 for line in counted]
        branches[folder] += [branch["count"] > 0 for line in counted for branch in line["branches"]]
        if folder in PROMISED:
            missing[file["file"]] = [line["line_number"] for line in counted if line["count"] == 0]
    print(HEAD, end="")
    for folder in sorted(lines):
        print(row(folder, lines[folder], branches[folder]))
    print(row("all", sum(lines.values(), []), sum(branches.values(), [])))
    return 1 if print_missing(missing) else 0


sys.exit(main())
