# SPDX-License-Identifier: Apache-2.0
"""build.py OUT - the pages of docs/ and the reference of the API as a site in OUT, by Sphinx; warnings are errors.

The pages that Sphinx reads are made in OUT-source: those of the tree with links that fit, and those of the headers.
"""
import json
import os
import re
import shutil
import subprocess
import sys

import reference
import links
import markdown
import navigation

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def write(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def make_source(folder):
    shutil.rmtree(folder, ignore_errors=True)
    made, symbols = reference.pages(os.path.join(ROOT, "include/tenrec"))
    places = navigation.pages(ROOT)
    tree = markdown.Pages(ROOT, places, set(made) - {"index"} | {"tenrec"})
    below = [name for _, names in reference.groups(set(made) - {"index"}) for name in names]
    sections = navigation.tree(ROOT, places, tree.title, below)
    # The umbrella header declares nothing itself: the index of the reference stands for it.
    for path, place in places.items():
        text = tree.convert(path).replace("(reference/tenrec.md", "(reference/index.md")
        if path == navigation.CONTENTS:
            text = "---\norphan: true\n---\n" + text
        write(folder, place, text + (navigation.toctrees(sections) if place == "index.md" else ""))
    for name, text in made.items():
        write(folder, f"reference/{name}.md", text)
    for path in sorted(tree.files):
        write(folder, tree.file_page(path), tree.show(path))
    for path in tree.pictures:
        os.makedirs(os.path.join(folder, "pictures"), exist_ok=True)
        shutil.copy(os.path.join(ROOT, path), os.path.join(folder, "pictures"))
    symbols["status"] = re.findall(r"^    X\((\w+), +-?\d+", tree.text("include/tenrec/error.h"), flags=re.MULTILINE)
    symbols["pages"] = {f"tenrec/{reference.file_name(name)}": f"reference/{name}" for name in made} | {"tenrec/tenrec.h": "reference/index"}
    symbols["pages"] |= {path: place.removesuffix(".md") for path, place in places.items()}
    symbols["pages"] |= {f"include/{header}": page for header, page in symbols["pages"].items() if header.startswith("tenrec/")}
    write(folder, "symbols.json", json.dumps(symbols, indent=1))
    write(folder, "navigation.json", json.dumps({"navigation": sections, "maintainers": navigation.MAINTAINERS}, indent=1))
    write(folder, "llms.txt", navigation.llms(ROOT, places, tree.title))
    write(folder, "conf.py", open(os.path.join(HERE, "conf.py"), encoding="utf-8").read())


def main():
    out = os.path.abspath(sys.argv[1])
    source = out + "-source"
    try:
        make_source(source)
    except ValueError as why:
        sys.exit(f"site: {why}")
    shutil.rmtree(out, ignore_errors=True)
    version = subprocess.run([os.path.join(ROOT, "script/version")], capture_output=True, text=True, check=True).stdout.strip()
    done = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto", "-d", source + "/.doctrees", source, out],
                          env=dict(os.environ, TENREC_SITE=HERE, TENREC_VERSION=version), stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit(f"site: Sphinx ended with {done.returncode}")
    shutil.copy(os.path.join(source, "llms.txt"), out)
    wrong = list(links.problems(out))
    for problem in wrong:
        print(f"site: {problem}", file=sys.stderr)
    if wrong:
        sys.exit(1)
    print(f"site: {sum(name.endswith('.html') for _, _, names in os.walk(out) for name in names)} pages, from {out}/index.html on")


main()
