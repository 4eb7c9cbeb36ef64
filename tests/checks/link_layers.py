# SPDX-License-Identifier: Apache-2.0
"""link_layers.py BUILD ARCHIVE ... | --update - which room links which.

A *room* is a folder of sources; the table `rooms` of a tree names its rooms, and for each the others that it may use. layers.py
reads #include lines, which a declaration of one's own evades; here the symbols of the object files show each use. The objects are
those of static libraries that this build has made; the folder of a library in the build is that of the table. --update draws the tables in
docs/internals/rooms.md.
"""
import collections
import functools
import os
import re
import subprocess
import sys

import report

KNOT_MAX = 7 # files that use each other in a circle


class Tree:
    """The objects of one source tree: what each defines and uses."""

    def __init__(self, root):
        self.root = root
        self.rooms = report.rooms(root)
        self.where = {}                           # symbol: the file that defines it
        self.wanted = collections.defaultdict(set) # file: undefined symbols
        # meson names an object after the path of its source.
        paths = [os.path.relpath(path, root or ".") for path in report.files(*([root] if root else report.LIBRARY), ends=(".c",))]
        self.sources = {path.replace("/", "_") + ".o": path for path in paths}

    def add(self, archive):
        out = subprocess.run(["nm", "-g", "-A", archive], capture_output=True, text=True,
                             check=True).stdout
        for line in out.splitlines():
            # archive:member:[address] kind name
            place, kind, name = line.rsplit(maxsplit=2)
            member = os.path.basename(place.split(":")[1])
            if member not in self.sources:
                continue
            source = self.sources[member]
            self.wanted.setdefault(source, set())
            if kind in "Uvw":
                self.wanted[source].add(name)
            else:
                self.where[name] = source

    def room(self, source):
        return report.room_of(source, "", self.rooms) or "."

    def uses(self):
        """(file, symbol, file that defines it) of each use across files, sorted."""
        for source in sorted(self.wanted):
            for name in sorted(self.wanted[source]):
                if self.where.get(name, source) != source:
                    yield source, name, self.where[name]


def against_the_table(tree):
    for source, name, target in tree.uses():
        here, there = tree.room(source), tree.room(target)
        if here != there and there not in tree.rooms.get(here, ()):
            yield f"{source} uses {name} of {target}: {here} may not use {there}"


def against_the_folders(tree):
    for source, name, target in tree.uses():
        if report.stands_above(target, source):
            yield f"{source} uses {name} of {target}, whose folder is above its own"


def knots(tree):
    """Strongly connected components of files, the largest first (Tarjan)."""
    after = collections.defaultdict(list)
    for source, _, target in tree.uses():
        after[source].append(target)
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in after[node]:
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            at = stack.index(node)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(tree.wanted):
        if node not in index:
            visit(node)
    return sorted(found, key=len, reverse=True)


def too_large(tree):
    for knot in knots(tree):
        if len(knot) > KNOT_MAX:
            yield f"{len(knot)} files use each other in a circle, {KNOT_MAX} may: {' '.join(knot)}"


PAGE = "docs/internals/rooms.md"


def picture(tree):
    """The table as a graph for Mermaid. An arrow goes to each room used that is not reached through another one."""
    table = report.rooms(tree)

    @functools.cache  # else each way through the table is walked
    def below(room):
        return table[room].union(*map(below, table[room]))

    def direct(room):
        return [r for r in table[room] if not any(r in below(other) for other in table[room])]

    arrows = [f"  {room} --> {used}" for room in reversed(table) for used in table if used in direct(room)]
    return "\n".join(["```mermaid", "flowchart TD", *arrows, "```"])


def pictures(page):
    """The page with the picture of each tree behind its mark."""
    for tree in ("", "plugins/tensorpipe"):
        page = re.sub(rf"(<!-- rooms of {tree or 'libtenrec'} -->\n)(```mermaid.*?```)?", lambda m: m[1] + picture(tree), page, count=1,
                      flags=re.DOTALL)
    return page


def main():
    if sys.argv[1:] == ["--update"]:
        drawn = pictures(report.text(PAGE)) # before the page is opened for writing
        with open(os.path.join(report.ROOT, PAGE), "w", encoding="utf-8") as f:
            f.write(drawn)
        return
    build, *archives = sys.argv[1:]
    trees = {}
    for archive in archives:
        root = os.path.relpath(os.path.dirname(os.path.abspath(archive)), build).removeprefix(".")
        trees.setdefault(root, Tree(root)).add(archive)
    for root, tree in trees.items():
        name = os.path.basename(root) or "libtenrec"
        report.case(f"link_layers_{name}_has_a_room_for_each_file",
                    [f"{f}: in no room of the table" for f in tree.wanted
                     if tree.room(f) not in tree.rooms])
        report.case(f"link_layers_{name}_uses_what_its_rooms_may", against_the_table(tree))
        report.case(f"link_layers_{name}_has_no_large_knot", too_large(tree))
        if not root:
            report.case(f"link_layers_{name}_uses_no_folder_above", against_the_folders(tree))
    page = report.text(PAGE)
    report.case("link_layers_are_drawn_in_the_docs",
                [] if pictures(page) == page else [f"{PAGE}: run tests/checks/link_layers.py --update"])
    report.finish()


main()
