# SPDX-License-Identifier: Apache-2.0
"""config.py TENREC PLUGINS [--update] - docs/config.md has every key there is.

The tables come from `tenrec info --json`, so from the tables by which values are
read. Sections of plugins that this build has not stay as they are.
"""
import json
import os
import re
import subprocess
import sys

import report

TENREC, PLUGINS = sys.argv[1], sys.argv[2]
PATH = "docs/config.md"
SECTION = re.compile(r"<!-- keys of (\w+): made by tests/checks/config.py -->\n(.*?)<!-- end -->\n", re.DOTALL)


def cell(text):
    return str(text).replace("|", "\\|")


def allowed(option):
    if "choices" in option:
        return "one of " + ", ".join(f"`{c}`" for c in option["choices"])
    if "min" in option:
        return f"{option['min']} to {option['max']}" if "max" in option else f"{option['min']} and more"
    return ""


def row(option, outer=""):
    default = f"`{cell(option['default'])}`" if option["default"] != "" else ""
    help_ = cell(option["help"])
    line = f"| `{outer}{option['name']}` | {option['type']} | {default} | {cell(allowed(option))} | {help_} |\n"
    return line + "".join(row(key, f"{option['name']}[].") for key in option.get("keys", []))


def table(options):
    return "| key | type | default | allowed | |\n|---|---|---|---|---|\n" + "".join(map(row, options))


def tables():
    env = {k: v for k, v in os.environ.items() if not k.startswith("TENREC_")}
    done = subprocess.run([TENREC, "info", "--json"], env=dict(env, TENREC_PLUGIN_PATH=PLUGINS),
                          capture_output=True, text=True, timeout=60, check=True)
    info = json.loads(done.stdout)
    of_plugins = {p["name"]: table(p["options"]) for p in info["backends"] + info["stores"] + info["observers"]
                  if os.path.dirname(p["path"]) == PLUGINS}
    return {"worker": table(info["worker"]), "security": table(info["security"]), "observe": table(info["observe"]), **of_plugins}


def main():
    made = tables()
    page = report.text(PATH)
    there = {match[1] for match in SECTION.finditer(page)}
    wanted = SECTION.sub(lambda m: m[0][:m.start(2) - m.start()] + made.get(m[1], m[2]) + "<!-- end -->\n", page)
    if "--update" in sys.argv:
        with open(os.path.join(report.ROOT, PATH), "w", encoding="utf-8") as f:
            f.write(wanted)
        return
    problems = [f"{PATH}: has no section for '{name}'" for name in made if name not in there]
    if page != wanted:
        problems.append(f"{PATH}: ninja -C BUILD update-config-page")
    report.case("config_page_has_every_key", problems)
    report.finish()


main()
