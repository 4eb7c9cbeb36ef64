# SPDX-License-Identifier: Apache-2.0
"""manual_test.py TENREC FOLDER PLUGINS - the manual pages and completions in FOLDER say all that the command says."""
import json
import os
import re
import shutil
import subprocess
import sys

from cases import contains, equal, main, run, true

TENREC, FOLDER, PLUGINS = map(os.path.abspath, sys.argv[1:4])


def read(name):
    with open(f"{FOLDER}/{name}", encoding="utf-8") as f:
        return f.read()


def page(name):
    """A page as people read it, without the lines that hyphens and margins broke."""
    got = subprocess.run(["groff", "-man", "-Tascii", "-rLL=2000n", "-rHY=0", "-P-cbou", f"{FOLDER}/{name}"], capture_output=True, text=True, check=True)
    equal(got.stderr, "", f"warnings about {name}")
    return got.stdout


def commands():
    return [name for name in re.findall(r"^  (\w+) ", run(TENREC, "help").stdout, flags=re.MULTILINE) if name != "help"]


def options(command):
    return set(re.findall(r"^ {2,6}(?:-\w, )?(--[\w-]+)", run(TENREC, "help", command).stdout, flags=re.MULTILINE))


def manual_has_a_page_for_each_command():
    index = page("tenrec.1")
    for command in commands():
        contains(index, f"tenrec-{command}(1)")
        text = page(f"tenrec-{command}.1")
        contains(text, f"tenrec {command} ")
        for option in options(command):
            true(re.search(rf"^ +(-\w, )?{option}\b", text, flags=re.MULTILINE), f"tenrec-{command}(1) has no {option}")


def manual_has_every_key_of_the_configuration():
    text = page("tenrec.yaml.5")
    got = json.loads(run(TENREC, "info", "--json").stdout)
    plugins = [p for p in got["backends"] + got["stores"] if os.path.dirname(p["path"]) == PLUGINS]
    true(len(plugins) > 5, f"only {len(plugins)} plugins")
    for keys in [got["worker"], got["security"], *(p["options"] for p in plugins)]:
        for key in keys:
            contains(text, f" {key['name']} ({key['type']}, default ")
            contains(text, key["help"])
    for plugin in plugins:
        contains(text, f"OF THE {'STORE' if plugin in got['stores'] else 'BACKEND'} {plugin['name']}")


def manual_explains_the_whole():
    contains(page("tenrec.7"), "TENREC_PLUGIN_PATH")


def complete(*words):
    script = f'. {FOLDER}/tenrec; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tenrec; printf "%s\\n" "${{COMPREPLY[@]}}"'
    return subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=True).stdout.split()


def manual_completes_in_bash():
    equal(complete("tenrec", "pi"), ["ping"])
    equal(set(commands()) - set(complete("tenrec", "")), set())
    for command in commands():
        equal(options(command) - set(complete("tenrec", command, "--")), set(), f"options of {command} that are not completed")
    true("/etc/passwd" in complete("tenrec", "info", "--config", "/etc/pass"), "a file is not completed")
    equal(complete("tenrec", "help", "conf"), ["conformance"])


def manual_completes_words():
    for words, some in ((("top", "--sort", ""), {"name", "served", "ways"}),
                        (("plugin", ""), {"new"}),
                        (("plugin", "new", "x", "--kind", ""), {"backend", "wrapper", "store", "observer"}),
                        (("secret", ""), {"new"}),
                        (("perf", ""), {"latency", "rate", "bandwidth"}),
                        (("conformance", "--security", ""), {"secret", "tls"}),
                        (("info", ""), {"worker", "security", "observe", "echo", "faulty"})):
        got = set(complete("tenrec", *words))
        true(some <= got, f"{some - got} is missing after {words}: {got}")
    equal(complete("tenrec", "top", "--sort", "server_"), ["server_p50", "server_p99"])
    columns = set(complete("tenrec", "top", "--sort", ""))
    for column in columns:
        contains(run(TENREC, "top", "--sort", column, "--store", "tcp://127.0.0.1:1", "--timeout", "1ms").stderr, "tcp://127.0.0.1:1")
    zsh = read("_tenrec")
    contains(zsh, "(name id state ")
    contains(zsh, "'2:word:(latency rate bandwidth)'")


# Every letter means the same in all commands.
LETTERS = {"-h": {"--help"}, "-n": {"--num-workers", "--workers"}, "-N": {"--count", "--calls"}}


def manual_gives_a_letter_one_meaning():
    meanings = {}
    for command in commands():
        for letter, option in re.findall(r"^ {2,6}(-\w), (--[\w-]+)", run(TENREC, "help", command).stdout, flags=re.MULTILINE):
            meanings.setdefault(letter, set()).add(option)
    for letter, options_of in meanings.items():
        true(len(options_of) == 1 or options_of == LETTERS.get(letter), f"{letter} means {options_of}")
    for command in commands():
        text = run(TENREC, "help", command).stdout
        true("--json" not in options(command) or "-j, --json" in text, f"{command} --json has no -j")
        true("--json" not in options(command) or "JSON, one object a line" in text, f"{command} --json means something else")


def manual_completes_in_zsh():
    text = read("_tenrec")
    for command in commands():
        for option in options(command):
            true(re.search(rf"^{command}\) .*'{option}\[", text, flags=re.MULTILINE), f"zsh does not complete {command} {option}")
    if shutil.which("zsh"):
        equal(subprocess.run(["zsh", "-n", f"{FOLDER}/_tenrec"], check=False).returncode, 0, "status of zsh -n")


main(globals(), "manual_")
