#!/usr/bin/env python3
"""Prints docs/guarantees.md: what public headers guarantee by number, each with the unit tests that cite it.

A guarantee is a paragraph ` *  G1  ...` of a header's head comment. A test cites it in the comment above its function.
Fails on one that no test cites.
"""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEADERS = ["informer", "controller", "elector", "plugin"]
GUARANTEE = re.compile(r"^ \*  ([A-Z]\d+) +((?:.*\n)(?: \*      ? ?\S.*\n)*)", re.M)
TEST = re.compile(r"/\*((?:[^*]|\*(?!/))*)\*/\n(?:static )?void (\w+)\(void \*\*state")
HEAD = """# Guarantees

What the public headers promise by number, and the unit tests that hold them to it. `make docs` writes this page from
both.
"""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def guarantees(header):
    """(number, text) of each, in order."""
    head = read(f"src/include/kinformer/{header}.h").split("*/")[0]
    for number, text in GUARANTEE.findall(head):
        yield number, " ".join(re.sub(r"^ \* *", "", text, flags=re.M).split())


def citations():
    """Number -> tests."""
    found = {}
    for path in sorted(glob.glob("tests/unit/test_*.c")):
        for comment, test in TEST.findall(read(path)):
            for number in re.findall(r"\b[A-Z]\d+\b", comment):
                found.setdefault(number, []).append(f"`{os.path.basename(path)}: {test}`")
    return found


def page():
    """The text, and what is wrong."""
    cited = citations()
    lines, wrong = [HEAD], []
    for header in HEADERS:
        lines.append(f"\n## kinformer/{header}.h\n")
        for number, text in guarantees(header):
            tests = cited.get(number, [])
            if not tests:
                wrong.append(f"no unit test cites {number} of {header}.h")
            lines.append(f"\n**{number}** {text}\n\n" + "".join(f"- {test}\n" for test in tests))
    return "".join(lines), wrong


def main():
    os.chdir(ROOT)
    text, wrong = page()
    for line in wrong:
        print("list-guarantees: " + line, file=sys.stderr)
    print(text, end="")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
