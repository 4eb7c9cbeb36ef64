# SPDX-License-Identifier: Apache-2.0
"""completion.py TENREC OUTPUT.bash OUTPUT.zsh - completions of the command, from what it says of itself."""
import os
import sys

import words

# What stands behind an option, by the word that its help uses for it.
FILES = {"F", "FILE"}

BASH = """# bash completion of tenrec
_tenrec() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=
    COMPREPLY=()
    case "${COMP_WORDS[1]} $prev" in
%(values)s
    %(files)s) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    esac
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "%(commands)s help --version" -- "$cur"))
        return
    fi
    case ${COMP_WORDS[1]} in
%(cases)s
    help) words="%(commands)s" ;;
    esac
    if [[ $cur == -* ]] || [ "${COMP_WORDS[1]}" = help ]; then
        COMPREPLY=($(compgen -W "$words" -- "$cur"))
        return
    fi
    if [ "$COMP_CWORD" -eq 2 ]; then
        case ${COMP_WORDS[1]} in
%(firsts)s
        esac
    fi
    [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$cur"))
}
complete -o filenames -F _tenrec tenrec
"""

ZSH = """#compdef tenrec
# zsh completion of tenrec
local -a commands
commands=(
%(commands)s
)
if (( CURRENT == 2 )); then
    _describe command commands
    return
fi
case $words[2] in
%(cases)s
help) _describe command commands ;;
esac
"""


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_option(letter, long, argument, whole):
    text = whole.split(";")[0].replace("[", "(").replace("]", ")").replace(":", " -")
    name = (argument or "").replace(":", "-")
    known = words.choices((letter, long, argument, whole))
    behind = f":{name}:{'_files' if argument in FILES else '(' + ' '.join(known) + ')' if known else ''}" if argument else ""
    return " ".join(quoted(f"{n}[{text}]{behind}") for n in (letter, long) if n)


def first(known):
    """The first word behind the command, for zsh."""
    return " " + quoted(f"2:word:({' '.join(known)})") if known else ""


def shown(info):
    """What `tenrec info` shows alone: parts of the configuration, and plugins of this build."""
    plugins = [p["name"] for kind in ("backends", "stores", "observers") for p in info[kind]
               if os.path.dirname(p["path"]) == os.environ["TENREC_PLUGIN_PATH"]]
    return ["worker", "security", "observe", *sorted(plugins)]


def main():
    commands = words.commands(sys.argv[1])
    files = sorted({n for c in commands for o in c.options for n in o[:2] if n and o[2] in FILES})
    names = " ".join(c.name for c in commands)
    firsts = {c.name: c.first for c in commands if c.first}
    firsts["info"] = shown(words.info(sys.argv[1]))
    values = [(c.name, [n for n in o[:2] if n], words.choices(o)) for c in commands for o in c.options if words.choices(o)]
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        f.write(BASH % {"files": " | ".join(f'*" {name}"' for name in files), "commands": names, "firsts": "\n".join(
            f'        {n}) COMPREPLY=($(compgen -W "{" ".join(w)}" -- "$cur")) ;;' for n, w in firsts.items()), "values": "\n".join(
            "    " + " | ".join(f'"{c} {n}"' for n in o) + f') COMPREPLY=($(compgen -W "{" ".join(w)}" -- "$cur")); return ;;' for c, o, w in values), "cases": "\n".join(
            f'    {c.name}) words="{" ".join(n for o in c.options for n in o[:2] if n)} --help" ;;' for c in commands)})
    with open(sys.argv[3], "w", encoding="utf-8") as f:
        f.write(ZSH % {"commands": "\n".join("    " + quoted(f"{c.name}:{c.summary}") for c in commands), "cases": "\n".join(
            f"{c.name}) _arguments " + " ".join(zsh_option(*o) for o in c.options) + first(firsts.get(c.name)) + " '*:file:_files' ;;" for c in commands)})


main()
