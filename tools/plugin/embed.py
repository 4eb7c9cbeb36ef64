# SPDX-License-Identifier: Apache-2.0
"""embed.py OUT NAME=FILE... - a C source with the text of each file as a string."""
import json
import sys


def main():
    out, *files = sys.argv[1:]
    with open(out, "w", encoding="utf-8") as f:
        f.write('/* Made by embed.py. */\n#include "plugin/templates.h"\n')
        for name, path in (pair.split("=", 1) for pair in files):
            with open(path, encoding="utf-8") as source:
                lines = [json.dumps(line) for line in source]
            f.write(f"\nconst char *const template_{name}[] = {{\n    " + ",\n    ".join(lines) + ",\n    NULL,\n};\n")


main()
