# SPDX-License-Identifier: Apache-2.0
"""embed.py OUT HEADER NAME=[FILE] FILE... - a C source with the lines of the files as lists, which HEADER declares."""
import json
import sys


def main():
    out, header, *texts = sys.argv[1:]
    lists = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if equals:
            lines = lists[name] = []
        else:
            path = text
        if path:
            with open(path, encoding="utf-8") as source:
                lines += [json.dumps(line) for line in source]
    with open(out, "w", encoding="utf-8") as f:
        f.write(f'/* Made by embed.py. */\n#include "{header}"\n')
        for name, lines in lists.items():
            f.write(f"\nconst char *const {name}[] = {{\n    " + ",\n    ".join(lines) + ",\n    NULL,\n};\n")


main()
