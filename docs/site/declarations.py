# SPDX-License-Identifier: Apache-2.0
"""declarations.py - public headers as data: sections, and entries that have a comment and what it stands above.

An entry is one comment and the declarations below it up to a blank line. The form of a comment is that of
CONTRIBUTING.md: text, then lines "key   meaning" of parameters, ret, errors, threads and source.
"""
import re
from dataclasses import dataclass, field

# Branches that no reader of C needs; of any other #if the first branch is shown.
HIDDEN = re.compile(r"#\s*if(?:def)?\s+(?:defined\()?(__cplusplus|__clang_analyzer__)\b")
SECTION = re.compile(r"/\* -{4} (.*?) ?-+ ?\*/")
KEY = re.compile(r"([a-z_]\w*(?:->\w+)?(?:, \w+)*) {2,}(\S.*)")
TOKEN = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[{}();]', re.DOTALL)
ATTRIBUTES = re.compile(r"^(?:(?:TENREC_COLD|TENREC_EXPORT|TENREC_PRINTF\([^)]*\))\s+)+")


@dataclass
class Declaration:
    kind: str  # function, variable, type, opaque, macro
    name: str
    code: str


@dataclass
class Entry:
    comment: str = ""
    declarations: list = field(default_factory=list)


@dataclass
class Header:
    title: str
    comment: str
    parts: list = field(default_factory=list)  # a str is the title of a section, all else an Entry


def visible(text):
    """The text without includes, the guard, pragmas and hidden branches."""
    lines, shown = [], []
    continued = False
    for line in text.split("\n"):
        directive = None if continued else re.match(r"#\s*(\w+)", line)
        word = directive[1] if directive else ""
        continued = line.endswith("\\")
        if word in ("if", "ifdef", "ifndef"):
            shown.append(not HIDDEN.match(line))
        elif word in ("else", "elif"):
            shown[-1] = bool(HIDDEN.match(line)) if word == "elif" else False
        elif word == "endif":
            shown.pop()
        elif all(shown) and word not in ("include", "pragma", "undef") and "clang-format o" not in line:
            lines.append(line)
    return "\n".join(lines)


def bare(comment):
    """The words of a comment without its marks."""
    lines = comment.removeprefix("/*").removesuffix("*/").split("\n")
    return "\n".join([lines[0].strip()] + [re.sub(r"^\s*\* ?", "", line).rstrip() for line in lines[1:]]).strip("\n")


def end_of_declaration(text, at):
    """The place behind a declaration that begins at `at`, and whether a body ends it."""
    depth, start = 0, at
    for token in TOKEN.finditer(text, at):
        mark = token[0]
        if mark in "({":
            if mark == "{" and depth == 0:
                start = token.start()
            depth += 1
        elif mark in ")}":
            depth -= 1
            if mark == "}" and depth == 0 and re.sub(r"/\*.*?\*/", "", text[at:start], flags=re.DOTALL).rstrip().endswith(")"):
                return token.end(), start
        elif mark == ";" and depth == 0:
            # A comment beside it, on the same line.
            beside = re.compile(r"[ \t]*/\*.*?\*/", re.DOTALL).match(text, token.end())
            return (beside.end() if beside else token.end()), None
    raise ValueError(f"a declaration has no end: {text[at:at + 80]!r}")


def declaration(code):
    code = ATTRIBUTES.sub("", code.strip())
    plain = re.sub(r"/\*.*?\*/", "", code, flags=re.DOTALL)
    opaque = re.match(r"(?:struct|union|enum) (\w+);", plain)
    if opaque:
        return Declaration("opaque", opaque[1], code)
    body = re.match(r"(?:typedef )?(?:struct|union|enum) (\w+)?\s*\{", plain)
    if body:
        return Declaration("type", re.search(r"\}\s*(\w+);\s*$", plain)[1] if plain.startswith("typedef") else body[1], code)
    if plain.startswith("typedef"):
        return Declaration("type", re.search(r"(\w+)(?:\s*\(.*\))?;\s*$", plain, re.DOTALL)[1], code)
    variable = re.fullmatch(r"extern [^()]*?(\w+);\s*", plain)
    if variable:
        return Declaration("variable", variable[1], code)
    function = re.search(r"(\w+)\(", plain)
    if not function:
        raise ValueError(f"neither a type nor a function: {code!r}")
    return Declaration("function", function[1], re.sub(r"^TENREC_ERROR_INLINE\b", "static inline", code))


def parse(text):
    """The Header of the text of one."""
    text = visible(text)
    text = text.removeprefix("/* SPDX-License-Identifier: Apache-2.0 */\n")
    end = text.index("*/") + 2
    about = bare(text[:end])
    title, _, rest = about.partition("\n\n")
    header = Header(" ".join(title.split()), rest)
    at, entry = end, None
    comment = ""

    def add(item):
        nonlocal entry, comment
        if comment or entry is None:
            entry = Entry(comment)
            header.parts.append(entry)
            comment = ""
        entry.declarations.append(item)

    while True:
        gap = re.compile(r"\s*").match(text, at)
        if gap[0].count("\n") > 1:
            if comment:
                header.parts.append(Entry(comment))
            entry, comment = None, ""
        at = gap.end()
        if at == len(text):
            break
        section = SECTION.match(text, at)
        if section:
            header.parts.append(section[1])
            entry, at = None, section.end()
        elif text.startswith("/*", at):
            end = text.index("*/", at) + 2
            comment, entry, at = bare(text[at:end]), None, end
        elif text.startswith("#", at):
            line = re.compile(r"#(?:[^\n]*\\\n)*[^\n]*").match(text, at)
            end = line.end()
            if line[0].count("/*") > line[0].count("*/"):
                end = text.index("*/", end) + 2
            macro = re.match(r"#\s*define (\w+)", line[0])
            if macro and not (re.fullmatch(r"#define \w+_H", line[0].strip()) or macro[1] == "X"):
                add(Declaration("macro", macro[1], text[at:end]))
            at = end
        else:
            end, body = end_of_declaration(text, at)
            add(declaration(text[at:body].rstrip() + ";" if body else text[at:end]))
            at = end
    return header


def keys_of(comment):
    """(text, [(key, meaning)]) of a comment."""
    words, keys = [], []
    for line in comment.split("\n"):
        key = KEY.fullmatch(line)
        if key and (keys or not words or not words[-1]):
            keys.append([key[1], key[2]])
        elif keys and line.startswith("  "):
            keys[-1][1] += " " + line.strip()
        else:
            words.append(line)
    return "\n".join(words).strip("\n"), [tuple(k) for k in keys]
