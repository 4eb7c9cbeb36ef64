# SPDX-License-Identifier: Apache-2.0
"""navigation.py - the contents of the site, as docs/README.md lists the pages."""
import os
import re

LANDING = "docs/site/landing.md"
SPECIAL = {LANDING: "index.md", "README.md": "readme.md", "SECURITY.md": "threat-model.md", "CONTRIBUTING.md": "contributing.md",
           "CHANGELOG.md": "changelog.md", "tests/README.md": "tests.md", "tests/HARDENING.md": "hardening.md", "docs/README.md": "contents.md"}
CONTENTS = "docs/README.md"
MAINTAINERS = "Contribute"  # the section that begins the pages for maintainers


def listed(root):
    """[(title of a section, {path of a page: words of its link})] of docs/README.md."""
    with open(os.path.join(root, CONTENTS), encoding="utf-8") as f:
        parts = re.split(r"^## (.*)\n", f.read(), flags=re.MULTILINE)[1:]
    found = []
    for title, body in zip(parts[::2], parts[1::2]):
        links = re.findall(r"^- \[([^\]]*)\]\(([^)#]*\.md)\)", body, flags=re.MULTILINE)
        found.append((title, {os.path.normpath(os.path.join("docs", link)): words for words, link in links}))
    return found


def pages(root):
    """{path in the tree: path in the site} of all pages."""
    docs = sorted(f"{folder}/{name}" for folder in ("docs", "docs/internals") for name in os.listdir(os.path.join(root, folder)) if name.endswith(".md"))
    return {path: SPECIAL.get(path) or os.path.relpath(path, "docs") for path in [*SPECIAL, *docs]
            if os.path.exists(os.path.join(root, path))}


def tree(root, places, title, below):
    """[(title of a section, [[words, page of the site, the same of pages below it]])]: the navigation.

    title(path) is the title of a page; `below` has the pages of the reference of the API.
    """
    out, seen = [], {LANDING, CONTENTS}
    for section, paths in listed(root):
        pages = [[title(path) if words.endswith(".md") else words, places[path].removesuffix(".md"), []]
                 for path, words in paths.items() if path not in seen]
        seen.update(paths)
        if section == "Reference":
            pages.insert(0, ["API", "reference/index", [[name if name.endswith(".hpp") else f"{name}.h", f"reference/{name}", []] for name in below]])
        if section == MAINTAINERS:
            pages += [[title(path), places[path].removesuffix(".md"), []] for path in sorted(places) if path not in seen]
        out.append([section, pages])
    return out


def llms(root, places, title):
    """The pages as llms.txt has them: the words of the first page, then each page with a line about it."""
    with open(os.path.join(root, LANDING), encoding="utf-8") as f:
        sentence = re.search(r"^Tenrec .*", f.read(), flags=re.MULTILINE)[0]
    out = f"# Tenrec\n\n> {sentence}\n\n- [API](reference/index.html): every function, type and status, from the headers\n"
    with open(os.path.join(root, CONTENTS), encoding="utf-8") as f:
        for line in f.read().splitlines():
            link = re.match(r"- \[([^\]]*)\]\(([^)#]*\.md)\)(:? ?.*)", line)
            if line.startswith("## "):
                out += f"\n{line}\n\n"
            elif link:
                path = os.path.normpath(os.path.join("docs", link[2]))
                about = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", link[3])
                out += f"- [{title(path) if link[1].endswith('.md') else link[1]}]({places[path].removesuffix('.md')}.html){about}\n"
    return out


def toctrees(sections):
    """The navigation in Sphinx's words, for the end of the first page."""
    return "".join(f"\n```{{toctree}}\n:hidden:\n:caption: {section}\n\n" + "".join(f"{words} <{page}>\n" for words, page, _ in pages) + "```\n"
                   for section, pages in sections)
