# SPDX-License-Identifier: Apache-2.0
"""library.py VERSION - prints for meson where the package tenrec_rpc has its headers and its libtenrec, a line each.

The package is imported only if its headers are those of Tenrec VERSION: another project may use its name.
"""
import importlib
import importlib.util
import os
import re
import sys


def version_of(headers):
    """Returns the version that headers declare; empty if they are not Tenrec's."""
    try:
        with open(os.path.join(headers, "tenrec/version.h"), encoding="utf-8") as f:
            return ".".join(re.findall(r"^#define TENREC_VERSION_(?:MAJOR|MINOR|PATCH) +(\d+)$", f.read(), re.MULTILINE))
    except FileNotFoundError:
        return ""


def main(version):
    spec = importlib.util.find_spec("tenrec_rpc")
    if not spec or not spec.origin:
        sys.exit("it is not installed")
    folder = os.path.dirname(spec.origin)
    headers = os.path.join(folder, "include")
    if version_of(headers) != version:
        sys.exit(f"{folder} has no headers of Tenrec {version}: it is another project's package, or another version, or pip has not installed it")
    package = importlib.import_module("tenrec_rpc")
    print(package.get_include(), package.get_library(), sep="\n")


main(*sys.argv[1:])
