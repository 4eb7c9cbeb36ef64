# SPDX-License-Identifier: Apache-2.0
"""mermaid.py - flowcharts of mermaid as SVG, drawn by Graphviz: no script, and the colours of the page."""
import re
import subprocess

EDGE = re.compile(r"([\w/.-]+)(?:[\[(]+\"?([^\"\])]*)\"?[\])]+)? *(-->|-\.->|---)(?:\|([^|]*)\|)? *([\w/.-]+)(?:[\[(]+\"?([^\"\])]*)\"?[\])]+)?")
NODE = re.compile(r"([\w/.-]+)[\[(]+\"?([^\"\])]*)\"?[\])]+")


def dot(text, where):
    """The same picture in the language of Graphviz."""
    lines = [line.strip().rstrip(";") for line in text.strip().split("\n")]
    kind = re.fullmatch(r"(?:flowchart|graph) (TD|TB|LR|RL|BT)", lines[0])
    if not kind:
        raise ValueError(f"{where}: cannot draw '{lines[0]}': docs/site/mermaid.py knows flowcharts only")
    out = [f"digraph {{ rankdir={kind[1].replace('TD', 'TB')}; bgcolor=transparent; nodesep=0.2; ranksep=0.3;",
           'node [shape=box style="rounded,filled" fontname="DejaVu Sans" fontsize=11 height=0.3 margin="0.1,0.04"];',
           'edge [arrowsize=0.6 fontname="DejaVu Sans" fontsize=10];']

    def quoted(word):
        return '"' + word.replace('"', '\\"') + '"'

    def node(name, words):
        if words:
            out.append(f"{quoted(name)} [label={quoted(words.replace('<br/>', chr(92) + 'n'))}];")
        return quoted(name)
    for line in lines[1:]:
        edge, single = EDGE.fullmatch(line), NODE.fullmatch(line)
        if edge:
            more = f" [label={quoted(edge[4])}]" if edge[4] else ""
            style = {"-->": "", "-.->": "[style=dashed]", "---": "[dir=none]"}[edge[3]]
            out.append(f"{node(edge[1], edge[2])} -> {node(edge[5], edge[6])}{style}{more};")
        elif single:
            node(single[1], single[2])
        elif line and not line.startswith("%%"):
            raise ValueError(f"{where}: cannot draw '{line}': docs/site/mermaid.py knows 'a --> b' and 'a[words]'")
    return "\n".join(out + ["}"])


def svg(text, where):
    """A wide flowchart is drawn a second time, from top to bottom, for a phone."""
    wide = drawn(text, where, "")
    if "flowchart LR" in text and float(re.search(r"min-width: min\(34rem, (\d+)pt", wide)[1]) > 260:
        return drawn(text, where, " tenrec-wide") + "\n" + drawn(text.replace("flowchart LR", "flowchart TD"), where, " tenrec-narrow")
    return wide


def drawn(text, where, kind):
    made = subprocess.run(["dot", "-Tsvg"], input=dot(text, where), capture_output=True, text=True, check=True).stdout
    made = made[made.index("<svg"):]
    made = re.sub(r"<title>.*?</title>|<!--.*?-->|<g id=\"[^\"]*\"", lambda m: "<g" if m[0].startswith("<g") else "", made, flags=re.DOTALL)
    for colour in ("stroke", "fill"):
        made = re.sub(rf' {colour}="(?:black|lightgrey|#d3d3d3)"', "", made)
    # A phone scrolls a wide picture rather than to make its words too small.
    wide = float(re.search(r'<svg width="([\d.]+)pt"', made)[1])
    head = f'<svg class="tenrec-graph{kind}" role="img" style="min-width: min(34rem, {wide:.0f}pt)"'
    return re.sub(r"\n\s*\n+", "\n", made).replace("<svg", head, 1).strip()
