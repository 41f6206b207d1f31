#!/usr/bin/env python3
"""The reference of the interface, out of the public headers: make-reference.py FOLDER, or --check [HEADERS].

Each header is a page: its head comment, then block after block (what stands between two empty lines) its comment as
text and its declarations as code. Nothing is said in another place than the header. Fails on a function that lacks one of

  - a comment in its block;
  - errors, if it may fail: in its block, or in a comment above that stands for several;
  - an owner of what it hands out, there, or by the rule in api.h;
  - `Threads:` and `Mirrors:`, what it is called upstream, in the head of its header.
"""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMENT = re.compile(r"\s*/\*((?:[^*]|\*(?!/))*)\*/\n?")
NOISE = re.compile(r"^(#ifndef \w+|#define KINFORMER_\w+_H|#endif.*|#ifdef __cplusplus|extern \"C\" {|}|#include .*)$", re.M)
FUNCTION = re.compile(r"KINF_API([^;{]*?)\b(kinf_\w+)\(([^;]*);")
ERRORS = re.compile(r"\b[Ee]rrors?\b|KINF_ERR_")
# Words by which headers say whose something is.
OWNER = re.compile(r"\b(borrow|reference|copied|valid|caller|never freed|constant|own\b)|'s[.,;]|`ret_\w+` and errors as", re.I)
BY_RULE = re.compile(r"_(new|parse|to_string|ref|unref|unref_ptr|free_ptr)$")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def escape(text):
    """What Markdown would take for its own, but for what stands between backquotes."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([<>|*_\[\]])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def as_list(paragraph):
    """Lines that begin with a number of a guarantee, or with a dash, are a list's."""
    paragraph = re.sub(r"^ *([A-Z]\d+) +", r"- **\1** ", paragraph, flags=re.M)
    return re.sub(r"\n *- ", "\n\n- ", paragraph)


def text_of(comment):
    """Paragraphs as they are; what is indented is a table or an example, and stays as it looks."""
    lines = [re.sub(r"^ ?\*? ?", "", line.rstrip()) for line in comment.strip("\n").split("\n")]
    paragraphs = "\n".join(lines).strip().split("\n\n")
    return "\n\n".join("```text\n" + paragraph + "\n```" if re.match(r" +\S", paragraph) else
                       as_list(escape(paragraph)) for paragraph in paragraphs)


def blocks(header):
    """(comment, declarations) of each."""
    for block in re.split(r"\n\s*\n", header):
        block = NOISE.sub("", block).strip("\n")
        found = COMMENT.match(block)
        comment, code = (found.group(1), block[found.end():]) if found else ("", block)
        if comment or code.strip():
            yield comment, code


def page(path):
    head, rest = COMMENT.match(read(path)), COMMENT.sub("", read(path), count=1)
    lines = [f"# kinformer/{os.path.basename(path)}\n", text_of(head.group(1)), ""]
    for comment, code in blocks(rest):
        section = re.match(r" --- (.*) --- $", comment)
        lines.append(f"## {section.group(1)}\n" if section else text_of(comment) + "\n" if comment else "")
        if code.strip():
            lines.append(f"```c\n{code}\n```\n")
    return "\n".join(lines)


def lacks(name, returned, parameters, said):
    """What is not said of a function."""
    if not said:
        yield "has no comment"
    if ("int" in returned.split() and "KINF_MUST_CHECK" in returned or "kinf_error *err" in parameters) and not ERRORS.search(said):
        yield "may fail: with which errors?"
    if ("*" in returned or "**ret_" in parameters) and not BY_RULE.search(name) and not OWNER.search(said):
        yield "hands something out: whose is it?"


def wrong(path):
    text = read(path)
    head, above = COMMENT.match(text).group(1), ""
    if not FUNCTION.search(text):
        return
    for word in ("Threads:", "Mirrors:"):
        if f" * {word} " not in head:
            yield f"{path}: its head does not say {word}"
    for block in re.split(r"\n\s*\n", text.replace(head, "", 1)):
        comments = " ".join(found.group(1) for found in COMMENT.finditer(block))
        functions = FUNCTION.findall(block)
        if not functions and " --- " in comments:
            above = ""
        elif not COMMENT.sub("", block).strip():
            above = comments
        for returned, name, parameters in functions:
            said = " ".join(re.sub(r"\n \* ?", " ", comments and comments + above).split())
            for what in lacks(name, returned, parameters, said):
                yield f"{path}: {name}() {what}"


def main(argument, folder="src/include/kinformer"):
    os.chdir(ROOT)
    headers = sorted(glob.glob(folder + "/*.h"))
    found = [line for path in headers for line in wrong(path)]
    for line in found:
        print("make-reference: " + line)
    if argument != "--check":
        os.makedirs(argument, exist_ok=True)
        index = ["# Reference\n", "| header | |", "|---|---|"]
        for path in headers:
            name = os.path.basename(path)[:-2]
            with open(os.path.join(argument, name + ".md"), "w", encoding="utf-8") as file:
                file.write(page(path))
            first = text_of(COMMENT.match(read(path)).group(1)).split("\n\n")[0].replace("\n", " ")
            index.append(f"| [{name}.h]({name}.md) | {first} |")
        with open(os.path.join(argument, "index.md"), "w", encoding="utf-8") as file:
            file.write("\n".join(index) + "\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
