# SPDX-License-Identifier: Apache-2.0
"""reference.py - the reference of the API as pages of Markdown, made from the public headers."""
import os
import re

import cpp
import declarations

# Headers of plugins and of tests; any other is for programs.
PLUGINS = ["plugin", "agent", "message", "proof", "tls", "store_plugin", "backend", "chain"]
TESTS = ["testkit"]
FIRST = ["rpc", "value", "tensor", "future", "rref", "group", "config", "error"]
CODE = re.compile(r"(`[^`]+`)")
NAME = re.compile(r"(?<![\w/`])((?:(?:struct|enum|union) )?(?:tenrec_\w*\w(?:\(\))?|\$?TENREC_\w*[A-Z0-9])|"
                  r"tenrec/\w+\.h(?:pp)?|docs/[\w-]+\.md|E[A-Z]{2,}(?:_[A-Z]+)*)(?![\w/])")


def escaped(text):
    return re.sub(r"([\\*_<>\[\]{}#|$])", r"\\\1", text)


def prose(text):
    """Words of a comment as Markdown: names as code, all else as it stands."""
    parts = []
    for part in CODE.split(text):
        if part.startswith("`") and len(part) > 1:
            parts.append(part)
        else:
            parts += [f"`{p}`" if NAME.fullmatch(p) else escaped(p) for p in NAME.split(part)]
    # The number of a rule leads to its line in the table of rules.
    return re.sub(r"\\\[((?:AG|PL|ST)-\d+)\\\]", lambda m: f'<a href="../plugin-rules.html#{m[1].lower()}">{m[1]}</a>', "".join(parts))


def fence(code, language):
    return f"```{language}\n{code}\n```\n"


def paragraphs(text):
    """The text of a comment: indented paragraphs are code or tables."""
    page = ""
    for part in re.split(r"\n{2,}", text.strip("\n")):
        lines = part.split("\n")
        indent = min((len(line) - len(line.lstrip()) for line in lines if line), default=0)
        if not part.strip():
            continue
        if indent >= 4:
            code = "\n".join(line[indent:] for line in lines)
            page += fence(code, "c" if code.rstrip().endswith(";") else "text") + "\n"
        else:
            page += prose(re.sub(r"^(\d+)\.", r"\1\\.", part, flags=re.MULTILINE)) + "\n\n"
    return page


def table(keys):
    if not keys:
        return ""
    rows = "".join(f"| {key if key in ('errors', 'threads', 'source', 'returns') else ', '.join(f'`{k}`' for k in key.split(', '))} "
                   f"| {prose(meaning)} |\n" for key, meaning in keys)
    return "| | |\n|---|---|\n" + rows + "\n"


def label(kind, name):
    """The name of an anchor: a type and a function may have one name."""
    return f"{kind}_{name}"


def entry(part, symbols, page):
    declared = [d for d in part.declarations if d.kind != "opaque"]
    text, keys = declarations.keys_of(part.comment)
    out = ""
    for d in declared:
        out += f"({label(d.kind, d.name)})=\n"
        symbols.setdefault(d.kind, {})[d.name] = label(d.kind, d.name)
        if d.kind == "type":
            for name in re.findall(r"^ +(TENREC_\w+)(?: = [^,]+)?,", d.code, re.MULTILINE) if re.match(r"(typedef )?enum", d.code) else ():
                symbols.setdefault("value", {})[name] = label(d.kind, d.name)
    for d in part.declarations:
        if d.kind == "opaque":
            symbols.setdefault("opaque", {}).setdefault(d.name, label("header", page))
    titles = [re.match(r"(?:typedef )?(enum|struct|union)?", d.code)[1] + " " + d.name if d.kind == "type" and re.match(r"(enum|struct|union)", d.code)
              else d.name for d in declared if d.kind != "macro"]
    if titles:
        out += f"### {', '.join(f'`{title}`' for title in titles)}\n\n"
    code = fence("\n".join(d.code for d in part.declarations), "c") if part.declarations else ""
    return out + (code + "\n" + paragraphs(text) if titles or code else paragraphs(text)) + table(keys)


def header_page(name, header, symbols):
    page = f"({label('header', name)})=\n# {name}.h\n\n{prose(header.title.split(' - ', 1)[1][0].upper() + header.title.split(' - ', 1)[1][1:])}\n\n"
    page += fence(f"#include <tenrec/{name}.h>", "c") + "\n" + paragraphs(header.comment)
    section = False
    for part in header.parts:
        if isinstance(part, str):
            section = True
            page += f"## {part[0].upper() + part[1:]}\n\n"
        else:
            text = entry(part, symbols, name)
            # A heading of the third level needs one of the second above it.
            page += text if section else re.sub(r"^### ", "## ", text, flags=re.MULTILINE)
    return page


def file_name(name):
    """The header of a page."""
    return name if name.endswith(".hpp") else name + ".h"


def groups(names):
    programs = [n for n in names if n not in PLUGINS + TESTS and n != "tenrec"]
    programs.sort(key=lambda n: (FIRST.index(n) if n in FIRST else len(FIRST), n))
    return [("Programs", [n for n in programs if not n.endswith(".hpp")]), ("C++", [n for n in programs if n.endswith(".hpp")]), ("Plugins", [n for n in PLUGINS if n in names]), ("Tests", [n for n in TESTS if n in names])]


def index_page(parsed, symbols):
    page = "# API\n\nMade from the headers, whose comments it shows. `#include <tenrec/tenrec.h>` is all that most programs need.\n"
    for title, names in groups(parsed):
        page += f"\n## {title}\n\n| header | contents |\n|---|---|\n"
        for name in names:
            about = parsed[name].title.split(" - ", 1)[1]
            page += f"| [{file_name(name)}]({name}.md) | {prose(about.rstrip('.'))} |\n"
        page += "\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"
    page += "\n## Functions\n\n"
    by_noun = {}
    for name in sorted(symbols.get("function", {})):
        by_noun.setdefault(name.split("_")[1], []).append(f"`{name}`")
    for names in by_noun.values():
        page += "- " + ", ".join(names) + "\n"
    page += "\n## Types\n\n" + ", ".join(f"`{name}`" for name in sorted(symbols.get("type", {}))) + "\n"
    return page


def pages(folder):
    """({name of a page: text}, {kind: {symbol: anchor}}) of all headers in `folder`."""
    parsed, made, symbols = {}, {}, {}
    for file in sorted(os.listdir(folder)):
        name, ending = os.path.splitext(file)
        if ending == ".hpp":
            with open(os.path.join(folder, file), encoding="utf-8") as f:
                parsed[file], made[file] = cpp.page(f.read(), label("header", file), prose, paragraphs)
        if ending == ".h" and name != "tenrec":
            with open(os.path.join(folder, file), encoding="utf-8") as f:
                try:
                    parsed[name] = declarations.parse(f.read())
                except ValueError as why:
                    raise ValueError(f"{file}: {why}") from why
    made.update({name: header_page(name, header, symbols) for name, header in parsed.items() if name not in made})
    made["index"] = index_page(parsed, symbols)
    return made, symbols
