# SPDX-License-Identifier: Apache-2.0
"""pages.py TENREC TEMPLATE.7.scd OUTPUT... - the manual, as scdoc wants it: tenrec-COMMAND.1.scd, tenrec.1.scd,
tenrec.yaml.5.scd and tenrec.7.scd, from what the command says of itself."""
import os
import re
import sys

import words


def plain(text):
    """A text in which nothing is a mark of scdoc."""
    return re.sub(r"([\\*_#\[\]<>~`|])", r"\\\1", text)


def head(name, section, summary):
    return f"{name}({section})\n\n# NAME\n\n{plain(name)} - {plain(summary)}\n"


def paragraph(text):
    """A text; with its own line breaks if it is a table."""
    if re.search(r"^  ", text, flags=re.MULTILINE):
        return "\n```\n" + "\n".join("    " + line for line in text.splitlines()) + "\n```\n"
    return "\n" + plain(text) + "\n"


def option(letter, name, argument, text):
    names = ", ".join(f"*{plain(n)}*" for n in (letter, name) if n)
    return f"\n{names}{' _' + plain(argument) + '_' if argument else ''}\n\t{plain(text)}\n"


def command_page(command):
    page = head(f"tenrec-{command.name}", 1, command.summary) + "\n# SYNOPSIS\n\n```\n"
    page += "".join(f"    {line}\n" for line in command.usage) + "```\n\n# DESCRIPTION\n"
    for part in command.parts:
        page += option(*part) if isinstance(part, tuple) else paragraph(part) if part else ""
    return page + "\n# SEE ALSO\n\n*tenrec*(1), *tenrec.yaml*(5), *tenrec*(7)\n"


def main_page(commands):
    page = head("tenrec", 1, "workers that call each other, with tensors") + "\n# SYNOPSIS\n\n*tenrec* _COMMAND_ ...\n\n# COMMANDS\n"
    for command in commands:
        page += f"\n*tenrec-{command.name}*(1)\n\t{plain(command.summary)}\n"
    return page + "\n# SEE ALSO\n\n*tenrec.yaml*(5), *tenrec*(7)\n"


def key(k, outer=""):
    limits = f", one of {', '.join(k['choices'])}" if "choices" in k else ""
    if "min" in k:
        limits += f", {k['min']} to {k['max']}" if "max" in k else f", {k['min']} and more"
    default = k["default"] or '""'
    text = f"\n*{plain(outer + k['name'])}* ({plain(k['type'])}, default {plain(default)}{plain(limits)})\n\t{plain(k['help'])}\n"
    return text + "".join(key(inner, f"{k['name']}[].") for inner in k.get("keys", []))


def config_page(info):
    page = head("tenrec.yaml", 5, "the configuration of Tenrec's workers") + """
# DESCRIPTION

One YAML file, which *TENREC\\_CONFIG* names or a program loads; without one the built-in configuration holds. A variable
overrides the file: TENREC\\_WORKER\\_\\_KEY, TENREC\\_SECURITY\\_\\_KEY, TENREC\\_OBSERVE\\_\\_KEY, TENREC\\_BACKENDS\\_\\_NAME\\_\\_OPTION, TENREC\\_BACKEND,
TENREC\\_INIT\\_METHOD. *tenrec-check*(1) reports mistakes with line and column.

```
    worker: { name: "worker{rank}", rpc_timeout: 30s }
    init_method: env://
    backend: faulty
    backends:
      tensorpipe: { plugin: tensorpipe, options: { progress: busy } }
      faulty: { plugin: faulty, wraps: tensorpipe }
```
"""
    for title, keys in (("worker", info["worker"]), ("security", info["security"]), ("observe", info["observe"])):
        page += f"\n# KEYS OF {title}\n" + "".join(map(key, keys))
    for kind, plugins in (("BACKEND", info["backends"]), ("STORE", info["stores"]), ("OBSERVER", info["observers"])):
        # Those of this build: others may be installed on this machine.
        ours = [p for p in plugins if os.path.dirname(p["path"]) == os.environ["TENREC_PLUGIN_PATH"]]
        for plugin in sorted(ours, key=lambda p: p["name"]):
            page += f"\n# OPTIONS OF THE {kind} {plugin['name']}\n\n{plain(plugin['summary'])}\n" + "".join(map(key, plugin["options"]))
    return page + "\n# SEE ALSO\n\n*tenrec-info*(1), *tenrec-check*(1), *tenrec*(7)\n"


def main():
    tenrec, template, outputs = sys.argv[1], sys.argv[2], sys.argv[3:]
    commands = words.commands(tenrec)
    with open(template, encoding="utf-8") as f:
        pages = {"tenrec.7.scd": f.read()}
    pages |= {f"tenrec-{c.name}.1.scd": command_page(c) for c in commands}
    pages |= {"tenrec.1.scd": main_page(commands), "tenrec.yaml.5.scd": config_page(words.info(tenrec))}
    missing = set(pages) ^ {os.path.basename(path) for path in outputs}
    if missing:
        sys.exit(f"pages.py: tools/manual/meson.build and the command differ in {sorted(missing)}")
    for path in outputs:
        with open(path, "w", encoding="utf-8") as f:
            f.write(pages[os.path.basename(path)])


main()
