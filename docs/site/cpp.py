# SPDX-License-Identifier: Apache-2.0
"""cpp.py - the headers for C++ as pages of Markdown: classes with their public members, functions with a comment."""
import re

import declarations

# Used by the inline functions only.
INTERNAL = {"caught", "function", "function_base", "read_items"}
QUALIFIERS = re.compile(r"\s*(?:const|noexcept|override|&&?)?(?=\W)")
HIDDEN = re.compile(r"\n+ *(?:private|protected):.*(?=\n\};)|[ \t]*// NOLINT[^\n]*", re.DOTALL | re.MULTILINE)


def closing(text, at):
    """The place behind the bracket that closes the one at `at`."""
    depth = 0
    for token in declarations.TOKEN.finditer(text, at):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(token[0], 0)
        if depth == 0 and token[0] in ")}":
            return token.end()
    raise ValueError(f"a bracket has no end: {text[at:at + 80]!r}")


def without_bodies(text):
    """Declarations in place of definitions of functions."""
    out, at = "", 0
    while token := declarations.TOKEN.search(text, at):
        out, at = out + text[at:token.start()], token.start()
        end = closing(text, at) if token[0] == "(" else token.end()
        out, at = out + text[at:end], end
        if token[0] != "(":
            continue
        while QUALIFIERS.match(text, at)[0].strip():
            end = QUALIFIERS.match(text, at).end()
            out, at = out + text[at:end], end
        initialisers = re.compile(r"\s*:\s+(?:[\w<>:]+(\(|\{))").match(text, at)
        while initialisers:
            at = closing(text, initialisers.start(1))
            initialisers = re.compile(r",\s*(?:[\w<>:]+(\(|\{))").match(text, at)
        body = re.compile(r"\s*\{").match(text, at)
        if body:
            out, at = out + ";", closing(text, body.end() - 1)
    return out + text[at:]


def end_of(text, at):
    """The place behind the definition or declaration that begins at `at`."""
    while True:
        token = declarations.TOKEN.search(text, at)
        at = closing(text, token.start()) if token[0] in "({" else token.end()
        if token[0] == ";":
            return at
        if token[0] == "{":
            return at + 1 if text.startswith(";", at) else at


def entries(text):
    """(comment, code, name) of each class, alias and function that a reader may use; of a section only its title, as the name."""
    text = declarations.visible(text)
    at = text.index("namespace tenrec\n{") + len("namespace tenrec\n{")
    while True:
        at = re.compile(r"(?:\s|#[^\n]*)*").match(text, at).end()
        if text.startswith("} // namespace", at):
            return
        section = declarations.SECTION.match(text, at)
        if section:
            yield "", "", section[1]
            at = section.end()
            continue
        comment = ""
        if text.startswith("/*", at):
            end = text.index("*/", at) + 2
            comment, at = declarations.bare(text[at:end]), end + 1
        end = end_of(text, at)
        code, at = text[at:end], end
        named = re.match(r"(?:template <.*?>\s+)?(?:(?:(class)|struct|using) (\w+)|[^(]*?(\w+)\()", code, re.DOTALL)
        if (comment or named[1]) and (named[2] or named[3]) not in INTERNAL:
            yield comment, without_bodies(HIDDEN.sub("", code)).strip(), named[2] or named[3]


def page(text, label, prose, paragraphs):
    """(title and comment, page) of a header; `prose` and `paragraphs` make Markdown of a comment."""
    about = declarations.bare(text[text.index("/* tenrec/"):text.index("*/", text.index("/* tenrec/")) + 2])
    title, _, rest = about.partition("\n\n")
    name, _, summary = " ".join(title.split()).partition(" - ")
    out = f"({label})=\n# {name.removeprefix('tenrec/')}\n\n{prose(summary[0].upper() + summary[1:])}\n\n```cpp\n#include <{name}>\n```\n\n" + paragraphs(rest)
    for comment, code, entry in entries(text):
        out += f"### `{entry}`\n\n```cpp\n{code}\n```\n\n" + paragraphs(comment) if code else f"## {entry[0].upper() + entry[1:]}\n\n"
    return declarations.Header(" ".join(title.split()), rest), out.replace("```c\n", "```cpp\n")
