#!/usr/bin/env python3
"""The reference of the interface, out of the public headers: make-reference.py FOLDER, or --check [HEADERS].

Each header is a page: its head comment, then block after block (what stands between two empty lines) its comment as
text and its declarations as code. Nothing is said in another place than the header. Which functions there are, and of
what type, clang says (its syntax tree). Fails on a function that lacks one of

  - a comment in its block;
  - errors, if it may fail: in its block, or in a comment above that stands for several;
  - an owner of what it hands out, there, or by the rule in api.h;
  - `Threads:` and `Mirrors:`, what it is called upstream, in the head of its header.
"""

import glob
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMENT = re.compile(r"\s*/\*((?:[^*]|\*(?!/))*)\*/\n?")
NOISE = re.compile(r"^(#ifndef \w+|#define KINFORMER_\w+_H|#endif.*|#ifdef __cplusplus|extern \"C\" {|}|#include .*)$", re.M)
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


def functions(path):
    """What clang finds in the header itself, and not in what it includes."""
    done = subprocess.run(["clang", "-std=c11", "-Isrc/include", "-fsyntax-only", "-Xclang", "-ast-dump=json", path],
                          stdout=subprocess.PIPE, check=True)
    return [node for node in json.loads(done.stdout)["inner"]
            if node["kind"] == "FunctionDecl" and "offset" in node["loc"] and "includedFrom" not in node["loc"]]


def lacks(function, said):
    """What is not said of a function."""
    inner = function.get("inner", ())
    parameters = [(node["name"], node["type"]["qualType"]) for node in inner if node["kind"] == "ParmVarDecl"]
    returned = function["type"]["qualType"].partition("(")[0]
    may_fail = any(node["kind"] == "WarnUnusedResultAttr" for node in inner) and returned == "int "
    if not said:
        yield "has no comment"
    if (may_fail or ("err", "struct kinf_error *") in parameters) and not ERRORS.search(said):
        yield "may fail: with which errors?"
    hands_out = "*" in returned or any(name.startswith("ret_") and kind.endswith("**") for name, kind in parameters)
    if hands_out and not BY_RULE.search(function["name"]) and not OWNER.search(said):
        yield "hands something out: whose is it?"


def wrong(path):
    text = read(path)
    found, above, end = functions(path), "", COMMENT.match(text).end()
    if not found:
        return
    for word in ("Threads:", "Mirrors:"):
        if f" * {word} " not in text[:end]:
            yield f"{path}: its head does not say {word}"
    for block in re.split(r"(?<=\n)\s*\n", text[end:]):
        begin = text.index(block, end)
        end = begin + len(block)
        comments = " ".join(comment.group(1) for comment in COMMENT.finditer(block))
        here = [function for function in found if begin <= function["loc"]["offset"] < end]
        if not here and " --- " in comments:
            above = ""
        elif not COMMENT.sub("", block).strip():
            above = comments
        for function in here:
            said = " ".join(re.sub(r"\n \* ?", " ", comments and comments + above).split())
            for what in lacks(function, said):
                yield f"{path}: {function['name']}() {what}"


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
