# SPDX-License-Identifier: Apache-2.0
"""links.py - what is wrong with the links of a built site: targets that are not there, and anything that a browser
would fetch from elsewhere."""
import os
import urllib.parse
from html.parser import HTMLParser

FETCHED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src")}


class Page(HTMLParser):
    """Anchors and links of one page."""

    def __init__(self):
        super().__init__()
        self.anchors, self.links = set(), []

    def handle_starttag(self, tag, attrs):
        for key, value in attrs:
            if key == "id" or (tag == "a" and key == "name"):
                self.anchors.add(value)
            if key in ("href", "src") and value is not None:
                self.links.append((tag, key, value))


def read(out):
    pages = {}
    for folder, _, names in os.walk(out):
        for name in names:
            if name.endswith(".html"):
                path = os.path.join(folder, name)
                page = pages[os.path.relpath(path, out)] = Page()
                with open(path, encoding="utf-8") as f:
                    page.feed(f.read())
    return pages


def problems(out):
    pages = read(out)
    for path, page in sorted(pages.items()):
        for tag, key, link in page.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc:
                if (tag, key) in FETCHED and url.scheme != "data":
                    yield f"{path}: fetches {link}"
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(url.path))) if url.path else path
            if not os.path.exists(os.path.join(out, target)):
                yield f"{path}: leads to {link}, which does not exist"
            elif url.fragment and target in pages and urllib.parse.unquote(url.fragment) not in pages[target].anchors | {""}:
                yield f"{path}: leads to {link}, an anchor that does not exist"
