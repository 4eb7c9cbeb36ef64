# SPDX-License-Identifier: Apache-2.0
"""markdown.py - pages of the tree as pages of the site: their links, pictures and anchors."""
import os
import re
import textwrap

import mermaid

BLOCK = re.compile(r"^(```+)(\w*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#: ]*)(#[^)]*)?\)")
STATUS = re.compile(r"^\| `TENREC_(\w+)` \|", re.MULTILINE)
RULE = re.compile(r"^\| ((?:AG|PL|ST|MS|PR|TL)-\d+) \|", re.MULTILINE)
LANGUAGES = {"c": "c", "h": "c", "cc": "cpp", "py": "python", "yaml": "yaml", "sh": "sh", "md": "markdown"}


def picture(svg):
    """An SVG of the tree within the page, so that it has the colours of the page."""
    svg = re.sub(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->", "", svg, flags=re.DOTALL)
    # Its own colours for light and dark give way to those of the style sheet.
    svg = re.sub(r"/\* colours \*/.*?/\* end \*/", "", svg, flags=re.DOTALL)
    # An empty line would end the block of HTML.
    return re.sub(r"\n\s*\n+", "\n", svg).strip()


class Pages:
    """Where each file of the tree goes."""

    def __init__(self, root, pages, headers):
        self.root, self.pages, self.headers = root, pages, headers
        self.files = set()  # further files of the tree that pages link to
        self.pictures = set()

    def text(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8") as f:
            return f.read()

    def title(self, path):
        return re.search(r"^# (.*)", self.text(path), flags=re.MULTILINE)[1]

    def place(self, path, where):
        """The page of the site that shows a file of the tree."""
        if path in self.pages:
            return self.pages[path]
        name = os.path.basename(path)
        if path.startswith("include/tenrec/") and name.removesuffix(".h") in self.headers:
            return f"reference/{name.removesuffix('.h')}.md"
        if not os.path.exists(os.path.join(self.root, path)):
            raise ValueError(f"{where}: leads to {path}, which does not exist")
        self.files.add(path)
        return self.file_page(path)

    @staticmethod
    def file_page(path):
        return "files/" + path.strip("/").replace("/", "-") + ".md"

    def convert(self, path):
        """The Markdown of the site for the page at `path`."""
        here, folder = self.pages[path], os.path.dirname(path)
        text = self.text(path)

        def link(match):
            image, words, target, section = match.groups()
            if not target:
                return match[0]
            full = os.path.normpath(os.path.join(folder, target))
            if image:
                if target.endswith(".svg") and "/* colours */" in self.text(full):
                    return f'\n<figure class="tenrec-picture" aria-label="{words}">\n{picture(self.text(full))}\n</figure>\n'
                self.pictures.add(full)
                return f"![{words}](/pictures/{os.path.basename(full)})"
            if target.endswith((".png", ".svg")):
                self.pictures.add(full)
                return f"[{words}]({os.path.relpath('pictures', os.path.dirname(here) or '.')}/{os.path.basename(full)})"
            if words.endswith(".md") and full in self.pages:
                words = self.title(full)
            place = os.path.relpath(self.place(full, path), os.path.dirname(here) or ".")
            return f"[{words}]({place}{section or ''})"

        def block(match):
            if match[2] == "mermaid":
                where = f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
                return f'<figure class="tenrec-picture">\n{mermaid.svg(match[3], where)}\n</figure>\n'
            language = {"": "text", "console": "text"}.get(match[2], match[2])
            return f"{match[1]}{language}\n{textwrap.dedent(match[3])}{match[1]}"

        out, at = "", 0
        for match in BLOCK.finditer(text):
            out += LINK.sub(link, text[at:match.start()]) + block(match)
            at = match.end()
        out += LINK.sub(link, text[at:])
        # A comment at the beginning of a line would swallow the table below it.
        out = re.sub(r"^<!--.*?-->\n", "", out, flags=re.MULTILINE | re.DOTALL)
        for rows, prefix in (STATUS, "`TENREC_"), (RULE, ""):
            out = rows.sub(lambda m, p=prefix: f'| <span id="{m[1].lower()}"></span>{p}{m[1]}{"`" if p else ""} |', out)
        return out

    def show(self, path):
        """The page of a file of the tree, or of a folder."""
        full = os.path.join(self.root, path)
        if os.path.isdir(full):
            names = sorted(n for n in os.listdir(full) if not n.startswith((".", "__")))
            return f"---\norphan: true\n---\n# {path}\n\nA folder of the tree:\n\n" + "".join(f"- `{n}`\n" for n in names)
        language = LANGUAGES.get(path.rsplit(".", 1)[-1], "text")
        return f"---\norphan: true\n---\n# {path}\n\n````{language}\n{self.text(path)}````\n"
