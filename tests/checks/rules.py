# SPDX-License-Identifier: Apache-2.0
"""rules.py [--update] - docs/plugin-rules.md lists the rules of the plugins' headers, and each has a case of
`tenrec conformance` or a reason, and each that has a case a plugin that breaks it."""
import glob
import os
import re
import sys

import report

PAGE = "docs/plugin-rules.md"
BEGIN = "<!-- made by tests/checks/rules.py --update; edit the headers, or the notes there -->\n"
END = "<!-- end -->\n"
HEADERS = {"AG": "agent.h", "PL": "plugin.h", "ST": "store_plugin.h", "OB": "observer_plugin.h"}
TITLES = {"AG": "Agents", "PL": "Plugins", "ST": "Stores", "OB": "Observers"}

# What happens if a plugin does not keep the rule, and where it is tested if `tenrec conformance` has no case.
NOTES = {
    "AG-1": ("The agent blocks an operation of a later ABI.", "of the core: tests/backend"),
    "AG-2": ("Messages are lost or mixed up, or the worker crashes, under load.", ""),
    "AG-3": ("A deadlock, as soon as the core calls the agent again.", "no program can see it: -fsanitize=thread finds many"),
    "AG-4": ("A call waits until its timeout, or a freed completion is used: a crash.", ""),
    "AG-5": ("A stranger learns what proves this member, and can take its place.", "of the bytes of each protocol: tests/tensorpipe"),
    "AG-6": ("A tensor that outlives its worker crashes the program.", "needs devices: tests/tensor"),
    "AG-7": ("Peers cannot connect.", "a start without it fails: it_starts_and_ends"),
    "AG-8": ("init_rpc hangs, or calls fail at first.", ""),
    "AG-9": ("Later members cannot be called, and the core waits for members that have left.", "needs a dynamic group: tests/monitor"),
    "AG-10": ("A message leaks or is used after its end; a thread of the program hangs on the network.", ""),
    "AG-11": ("Device memory is reused while it is read, so the receiver gets wrong elements.", "needs devices: tests/tensor, script/ci/gpu-test"),
    "AG-12": ("A message leaks, or does not reach the user.", "each case of a wrapper shows it"),
    "AG-13": ("A call waits longer than its answer takes, or until its timeout.", ""),
    "AG-14": ("Requests stay unread for ever.", ""),
    "AG-15": ("Calls to a worker that left wait until their timeout.", ""),
    "AG-16": ("A graceful shutdown loses messages, or takes its whole limit.", ""),
    "AG-17": ("Calls wait for ever at the end; code that is unmapped runs: a crash.", ""),
    "AG-18": ("Each worker leaks memory.", ""),
    "AG-19": ("Users search for values that do not exist.", ""),
    "AG-20": ("An unused context takes memory on a device.", "needs devices: tests/tensor"),
    "AG-21": ("The first tensor to a device fails.", "needs devices: tests/tensor"),
    "AG-22": ("A tensor is copied once more than necessary.", "not testable: the answer is a guess"),
    "AG-23": ("A worker sleeps although it could serve, or its shutdown hangs.", "of speed: tests/tensorpipe/threads"),
    "AG-24": ("Memory of the plugin is freed by the core: a crash.", ""),
    "AG-25": ("A plugin that starts threads of its own for a delay leaks them.", "of the core: tests/backend"),
    "AG-26": ("Tensors arrive outside the receiver's memory, or a call waits for an answer that never comes.", ""),
    "AG-27": ("Memory grows without limit while functions run.", ""),
    "AG-28": ("Calls to a dead worker wait until their timeout.", ""),
    "AG-29": ("The program does not learn that a caller died.", ""),
    "AG-30": ("Shared tensors of a connection leak.", "needs descriptors: tests/tensor, tests/tensorpipe"),
    "AG-31": ("A tensor has the elements of another.", "needs descriptors: tests/tensor, tests/tensorpipe"),
    "AG-32": ("A tensor has the elements of another.", "needs descriptors: tests/tensor, tests/tensorpipe"),
    "AG-33": ("A missing service crashes the worker.", "of the shipped plugins: tests/plugin"),
    "AG-34": ("A call waits until its timeout, or its caller sees bytes instead of an error.", "of the core: tests/backend, tests/limit"),
    "AG-35": ("A graceful shutdown loses held messages, or they overtake each other.", "of the core: tests/backend, tests/limit, tests/faulty"),
    "AG-37": ("A graceful shutdown waits for a member that crashed, until its limit.", ""),
    "AG-38": ("A member that receives a large tensor for longer than all heartbeats take is removed from its group.", "needs a dynamic group: tests/monitor"),
    "AG-40": ("A reader of a region gets bytes that the owner wrote after it had revoked the region.", ""),
    "AG-41": ("A write changes a region after its owner has revoked it.", ""),
    "AG-39": ("Callers that are no members make a worker hold memory without limit.", "of the shipped backends: tests/tensorpipe, tests/ucx"),
    "AG-42": ("Two workers that stand alone confuse each other with themselves.", "of plugins with the flag: tests/link"),
    "AG-43": ("The death of a worker that holds references is not noticed.", "of the shipped backends: tests/tensorpipe"),
    "OB-1": ("Two observers bind one address, or none.", "of the core: tests/metrics"),
    "OB-2": ("A worker starts late, or a call waits for a collector.", "no program can see it"),
    "OB-3": ("A thread of the plugin runs in unmapped code: a crash.", ""),
    "OB-4": ("Spans leak, or are missing in the counts.", ""),
    "OB-5": ("A worker ends late, or names of a worker are used after its end: a crash.", ""),
    "OB-6": ("Memory of the core is freed by the plugin: a crash.", "of the core: tests/metrics"),
    "OB-7": ("Memory of the core is freed by the plugin: a crash.", "of the core: tests/metrics"),
    "OB-8": ("Another user blocks the observer, or reads its data.", "tests/base, tests/system/metrics_test.py"),
    "OB-9": ("A wrong address is noticed only when the data are missing.", ""),
    "PL-1": ("The core refuses a plugin that lacks a symbol, and names it. Another exported symbol may hide that of another library.", ""),
    "PL-2": ("The core refuses the plugin, with the reason.", "of the loader: tests/plugin"),
    "PL-3": ("The core refuses the plugin, or a missing service crashes it.", "of the loader: tests/plugin"),
    "PL-4": ("The core cannot say what is wrong with the plugin.", "of the loader: tests/plugin"),
    "PL-5": ("`tenrec info` does not show which parts of the plugin work here.", "optional: tests/tools"),
    "PL-6": ("`tenrec info` and `tenrec check` change something.", "of the loader: tests/plugin"),
    "PL-7": ("A failed start leaks, or crashes at its end.", "needs a failure of the plugin's own: tests/tensorpipe"),
    "PL-9": ("`tenrec check` accepts an address that the plugin refuses at a start.", "of the shipped plugins: tests/tools/check_test.py"),
    "PL-8": ("Setuid programs refuse the plugin; or a variable of their caller writes a file with their rights.", "of the shipped plugins: tests/plugin"),
}
NOTES.update({f"ST-{n}": (text, {1: "of the core: tests/plugin/stores_test.c", 18: "optional: tests/store", 19: "optional: tests/store", 21: "optional: tests/store"}.get(n, "")) for n, text in enumerate([
    "A URL opens another store, or none.",
    "Groups do not find each other.",
    "A worker that waits blocks the store for the others.",
    "init_rpc ends later than its timeout.",
    "A value is read after its end.",
    "A modification is made twice, or an error does not name the store.",
    "A password is printed.",
    "A member waits for a key that exists.",
    "Two workers get one rank.",
    "Two workers both win an election.",
    "A start waits until its timeout, or uses a processor while it waits.",
    "A check waits.",
    "Keys of a former group remain.",
    "The number is wrong in a report.",
    "A thread of the plugin runs after its end.",
    "Workers of other hosts cannot be reached.",
    "A start fails because its store starts a moment later.",
    "A wait loses its place in the queue of the store each time that it checks for other events.",
    "A worker that leaves waits for a store that hangs.",
    "A group meets in a store that loses simultaneous changes of two workers.",
    "A worker that answers a thousand others asks the store a thousand times in succession.",
], 1)})


def rules():
    """{number: (header, text)}, in the order of the headers."""
    found = {}
    for header in HEADERS.values():
        for comment in re.findall(r"/\*(.*?)\*/", report.text(f"include/tenrec/{header}"), re.S):
            lines = [re.sub(r"^\s*\* ?", "", line) for line in comment.split("\n")]
            for paragraph in "\n".join(lines).split("\n\n"):
                parts = re.split(r"\[([A-Z]{2}-\d+)\] ", paragraph)
                for number, text in zip(parts[1::2], parts[2::2]):
                    found.setdefault(number, []).append((header, " ".join(text.split())))
    return found


def cases():
    """{number: [case]}"""
    found = {}
    for path in sorted(glob.glob(os.path.join(report.ROOT, "tools/conformance/**/*.c"), recursive=True)):
        with open(path, encoding="utf-8") as f:
            for name, numbers in re.findall(r'^(?:STORE_|OBSERVER_)?CASE(?:_OF_TWO)?\((\w+),\s*"([^"]+)"\)', f.read(), re.M):
                for number in numbers.split():
                    found.setdefault(number, []).append(name)
    return found


def faults():
    """The rules of which tests/contract breaks each, and demands that its case names that rule alone."""
    found = set()
    for name in ("broken_test.py", "broken_store_test.py", "broken_observer_test.py"):
        found.update(re.findall(r'^ +(?:FAULTS\[)?"[^"]+"(?:\] =|:) \("\w+", "([A-Z]{2}-\d+)",', report.text(f"tests/contract/{name}"), re.M))
    return found


def tables(stated, checked):
    text = ""
    for kind, header in HEADERS.items():
        text += (f"\n## {TITLES[kind]}: `tenrec/{header}`\n\n"
                 "| rule | text | if a plugin breaks it | tested by |\n|---|---|---|---|\n")
        for number, places in stated.items():
            if not number.startswith(kind + "-"):
                continue
            otherwise, reason = NOTES.get(number, ("", ""))
            by = ", ".join(f"`{name}`" for name in checked.get(number, [])) or reason
            says = places[0][1].replace("|", "\\|")
            text += f"| {number} | {says} | {otherwise} | {by} |\n"
    return text


def main():
    stated, checked = rules(), cases()
    page = report.text(PAGE)
    before, rest = page.split(BEGIN)
    wanted = before + BEGIN + tables(stated, checked) + END + rest.split(END)[1]
    if "--update" in sys.argv:
        with open(os.path.join(report.ROOT, PAGE), "w", encoding="utf-8") as f:
            f.write(wanted)
        return
    report.case("rules_page_is_up_to_date", [] if page == wanted else [f"{PAGE}: python3 tests/checks/rules.py --update"])
    report.case("rules_have_one_place_each", [f"{number}: {len(places)} places" for number, places in stated.items() if len(places) > 1])
    report.case("rules_have_a_case_or_a_reason",
                [f"{number} has neither" for number in stated if number not in checked and not NOTES.get(number, ("", ""))[1]])
    report.case("rules_of_cases_are_broken_by_a_test", [f"{number} has a case, but no broken plugin shows that it sees" for number in sorted(checked) if number not in faults()])
    report.case("rules_of_cases_and_notes_exist",
                [f"{number} is in no header" for number in sorted({*checked, *NOTES}) if number not in stated])
    report.finish()


main()
