#!/usr/bin/env python3
"""Documents say what is there: links lead to files and headings, listings are parts of the files that they name.

A listing is a fenced block behind a line `<!-- from FILE -->`; its lines stand in that file as they are, one behind the other. A
line `...` stands for lines that are left out.
"""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
LISTING = re.compile(r"^<!-- from (\S+) -->\n```\w*\n(.*?)^```", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def anchors(text):
    """What a heading is called in a link."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def wrong_links(path, text):
    for link in LINK.findall(FENCE.sub("", text)):
        target, _, anchor = link.partition("#")
        if re.match(r"\w+:", link):
            continue
        file = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if not os.path.exists(file):
            yield f"there is no {link}"
        elif anchor and anchor not in anchors(read(file)):
            yield f"there is no heading for {link}"


def is_in(listing, text):
    at = 0
    for part in re.split(r"^\.\.\.\n", listing, flags=re.M):
        at = text.find(part, at) + len(part)
        if at < len(part):
            return False
    return True


def wrong_listings(text):
    for name, listing in LISTING.findall(text):
        path = os.path.join(ROOT, name)
        if not os.path.exists(path):
            yield f"a listing is from {name}, which is not there"
        elif not is_in(listing, read(path)):
            yield f"a listing is not in {name} as it is: {listing.splitlines()[0].strip()}"


def main():
    os.chdir(ROOT)
    paths = sorted(glob.glob("*.md") + glob.glob("*/*.md") + glob.glob("*/*/*.md"))
    paths = [path for path in paths if not path.startswith("build/")]
    found = [f"{path}: {what}" for path in paths
             for what in [*wrong_links(path, read(path)), *wrong_listings(read(path))]]
    for line in found:
        print("check-docs: " + line)
    print(f"check-docs: {len(paths)} files, {len(found)} wrong" if found else "check-docs: ok")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
