# SPDX-License-Identifier: Apache-2.0
"""site.py OUT LIST... - the site of the documentation is built in OUT without a warning, its links lead somewhere, its
reference has each function that the libraries export, and its first page the figures of docs/performance.md."""
import os
import re
import subprocess
import sys
import tempfile

import report

HERE = os.path.join(report.ROOT, "docs/site")
sys.path.append(HERE)
import declarations  # pylint: disable=wrong-import-position
import links  # pylint: disable=wrong-import-position
import reference  # pylint: disable=wrong-import-position

OUT, LISTS = os.path.abspath(sys.argv[1]), sys.argv[2:]


def unbuilt():
    done = subprocess.run([sys.executable, os.path.join(HERE, "build.py"), OUT], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        yield from (done.stdout + done.stderr).splitlines()[-20:] or [f"ends with {done.returncode}"]


def other_versions():
    said = subprocess.run([os.path.join(report.ROOT, "script/version")], capture_output=True, text=True, check=True).stdout.strip()
    path = os.path.join(OUT, "index.html")
    if not os.path.exists(path) or f"<footer>Tenrec {said}," not in report.text(path):
        yield f"docs/site/build.py: the foot of index.html has no 'Tenrec {said}'"


def unmeasured_figures():
    """Figures of the first page that docs/performance.md does not have, the peers' too."""
    measured = report.text("docs/performance.md")
    figures = re.findall(r"\d+(?:\.\d+)?(?: ?(?:M/s|k/s|ms|x\b))", report.text("docs/site/landing.md"))
    if len(figures) < 5:
        yield "docs/site/landing.md: has fewer than three figures with their peers"
    for figure in figures:
        if figure not in measured:
            yield f"docs/site/landing.md: docs/performance.md has no '{figure}'"


def unlisted_pages():
    """llms.txt lists each page that docs/README.md lists, and only pages that exist."""
    path = os.path.join(OUT, "llms.txt")
    listed = re.findall(r"\]\(([^)]*)\)", report.text(path)) if os.path.exists(path) else []
    if len(listed) < len(re.findall(r"^- \[", report.text("docs/README.md"), re.MULTILINE)):
        yield f"docs/site/navigation.py: llms.txt has {len(listed)} pages only"
    for page in listed:
        if not os.path.exists(os.path.join(OUT, page)):
            yield f"docs/site/navigation.py: llms.txt names {page}, which does not exist"


def functions_without_a_place():
    _, symbols = reference.pages(os.path.join(report.ROOT, "include/tenrec"))
    for path in LISTS:
        with open(path, encoding="utf-8") as f:
            for name in f.read().split():
                if name not in symbols["function"]:
                    yield f"docs/site/declarations.py: does not find {name}, which {os.path.basename(path)} lists"


def unmarked_keys():
    """Comments of headers where a key stands within a line, as clang-format leaves a line that was too long."""
    for path in report.files("include", ends=(".h",)):
        for part in declarations.parse(report.text(path)).parts:
            found = None if isinstance(part, str) else re.search(r"[^,\s] (errors|threads|source)  +\w", part.comment)
            if found:
                yield f"{path}: '{found[1]}' of {part.declarations[0].name} begins no line"


def overlooked():
    """Faults that the check of links does not report."""
    with tempfile.TemporaryDirectory(prefix="tenrec-site-") as folder:
        def page(text):
            with open(os.path.join(folder, "a.html"), "w", encoding="utf-8") as f:
                f.write(text)
            return list(links.problems(folder))
        for wrong in ('<a href="b.html">', '<a href="#b">', '<script src="https://cdn.example/a.js">', '<img src="b.png">'):
            if len(page(wrong)) != 1:
                yield f"docs/site/links.py: passes {wrong}"
        for right in ('<a id="b" href="#b">', '<a href="a.html#">', '<a href="https://example.org/">'):
            yield from page(right)


report.case("site_links_that_lead_nowhere_are_found", overlooked())
report.case("site_reference_has_each_exported_function", functions_without_a_place())
report.case("site_comments_of_headers_have_their_form", unmarked_keys())
report.case("site_is_built_without_a_warning", unbuilt())
report.case("site_first_page_has_measured_figures", unmeasured_figures())
report.case("site_lists_its_pages_in_llms_txt", unlisted_pages())
report.case("site_names_the_version_of_the_tree", other_versions())
report.finish()
