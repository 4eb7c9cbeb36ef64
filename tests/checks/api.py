# SPDX-License-Identifier: Apache-2.0
"""api.py LIST... - the names of what the libraries export, and the structs that their callers see: the rules of docs/internals/api.md."""
import re
import sys

import report

# Functions of torch.distributed.rpc and its backend_registry: tenrec_ and this name.
TORCH = """backend_registered get_worker_info init_rpc is_available register_backend remote rpc_async rpc_sync
    shutdown""".split()
# Helpers of torch's dist_utils: tenrec_test_ and this name.
TORCH_TEST = """dist_init get_function_event get_num_owners_and_forks initialize_pg setup_fault_injection
    wait_until_node_failure wait_until_owners_and_forks_on_rank
    wait_until_pending_futures_and_users_flushed worker_name""".split()

# What libtenrec exports: no more than this. A commit that raises a number says in its body why no existing function will do.
FUNCTIONS_AT_MOST = 204
CONCEPTS_AT_MOST = 22 # the nouns that a user learns
PART_OF = {"bulk": "region", "chain_options": "chain", "dtype": "tensor", "group_view": "group", "msg": "chain",
           "store_server": "store"}

NOUNS = """bulk call chain chain_options config dtype future group group_view link log msg object plugin process_group profiler
    region rref scope store store_server stream tensor test test_group torch torch_member
    torch_request torch_rref trace value version weights worker""".split()
VERBS = """add all_gather async attach barrier begin bind call cancel check close compare_set connect contiguous copy delete describe die disconnect dispatch
    drain drop end enter expect find finish from get inspect join kill lead leave list load local make mark new open order parse place poll publish pull receive record register
    release remote remove report resume return revoke rpc send set share start stop stretch take then to to_here unload unpack wait wake
    withdraw write""".split()
# What a getter that cannot fail is named by, and what it says yes or no to.
PROPERTIES = """address args bytes canceled confirmed_by_owner count data desc done dropped error event from function future
    is_owner name num_keys number owner owner_name pending proof running settings stream text time_left trace type_name value
    worker""".split()
OPPOSITE = {"new": "drop", "open": "close", "load": "unload", "add": "remove", "begin": "end", "start": "stop"}
# Verbs of which one noun has half a pair only, as the other half would mean nothing.
ALONE = {"config_load", "future_add", "msg_new", "store_add", "torch_rref_new"}  # tenrec_rref_drop


def too_many(path):
    names = report.text(path).split()
    concepts = {PART_OF.get(noun, noun) for noun, _ in (split(name.removeprefix("tenrec_")) for name in names) if noun}
    for what, n, most in (("functions", len(names), FUNCTIONS_AT_MOST), ("concepts", len(concepts), CONCEPTS_AT_MOST)):
        if n > most:
            yield f"{path}: {n} {what}, at most {most}: leave one out, or raise the number and say why in the commit"
        elif n < most:
            yield f"tests/checks/api.py: {most} {what} are allowed, and there are {n}: lower the number"


def forty():
    """The table of docs/concepts.md names forty functions, and each is exported."""
    page = report.text("docs/concepts.md")
    rows = re.findall(r"^\| [^|]* \| ([^|]*) \|$", page[page.index("## Forty functions"):], flags=re.MULTILINE)[1:]
    shown = [f"tenrec_{name}" for row in rows for name in re.findall(r"`(\w+)`", row)]
    if len(shown) != 40:
        yield f"docs/concepts.md: shows {len(shown)} functions, expected forty"
    for name in sorted(set(shown) - set(names)):
        yield f"docs/concepts.md: {name} is not exported"


def exported():
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as f:
            yield from f.read().split()


def split(name):
    """(noun, the rest) of a name without its prefix; the longest noun that fits."""
    for noun in sorted(NOUNS, key=len, reverse=True):
        if name.startswith(noun + "_"):
            return noun, name[len(noun) + 1:]
    return None, name


def begins_with(rest, words):
    return any(rest == word or rest.startswith(word + "_") for word in words)


def neither_rule(names):
    for name in names:
        bare = name.removeprefix("tenrec_")
        noun, rest = split(bare)
        if bare in TORCH or bare.startswith("test_") and bare[5:] in TORCH_TEST:
            continue
        if not noun:
            yield f"{name}: not a name of torch.distributed.rpc, and begins with no noun of docs/internals/api.md"
        elif not begins_with(rest, VERBS) and rest not in PROPERTIES:
            yield f"{name}: after '{noun}' comes neither a verb nor a property"


def torch_is_missing(names):
    for name in TORCH:
        if f"tenrec_{name}" not in names:
            yield f"tenrec_{name}: torch has it, and it is not exported"


def without_rhyme(names):
    have = {split(name.removeprefix("tenrec_")) for name in names}
    verbs = {(noun, rest.split("_")[0]) for noun, rest in have}
    for noun, verb in sorted((n, v) for n, v in verbs if n):
        if verb in OPPOSITE and (noun, OPPOSITE[verb]) not in verbs and f"{noun}_{verb}" not in ALONE:
            # A session is started and dropped; what is got is dropped.
            yield f"tenrec_{noun}_{verb} has no tenrec_{noun}_{OPPOSITE[verb]}"
        if verb == "free":
            yield f"tenrec_{noun}_free: the verb is drop"


def open_structs():
    """Structs of the public headers that neither begin with their size nor say why they may not grow."""
    for path in report.files("include", ends=(".h",)):
        text = report.text(path)
        for match in re.finditer(r"^(?:typedef )?(struct|union) (\w+) \{\n((?:\s*/\*.*?\*/)?\s*[^\n]*\n)", text,
                                 flags=re.MULTILINE | re.DOTALL):
            comment = text[:match.start()].rstrip()
            comment = comment[comment.rfind("/*"):] if comment.endswith("*/") else ""
            first = re.sub(r"/\*.*?\*/", "", match[3], flags=re.DOTALL)
            if not re.match(r"\s*((uint32_t (size|kind|magic)|struct tenrec_extension extension);|TENREC_PLUGIN_HOST$)", first) and \
                    not re.search(r"[Nn]ever\s+(?:\*\s+)?grows|Grows at its end", comment):
                yield f"{path}: struct {match[2]} begins with no size, and its comment does not say 'Never grows: why'"


def reaches(header):
    """All headers of Tenrec that one includes."""
    seen, todo = set(), [header]
    while todo:
        for name in re.findall(r"#include <tenrec/(\w+\.h)>", report.text(f"include/tenrec/{todo.pop()}")):
            if name not in seen:
                seen.add(name)
                todo.append(name)
    return seen


def plugins_seen():
    plugin_side = {"agent.h", "message.h", "plugin.h", "store_plugin.h", "observer_plugin.h", "chain.h", "backend.h", "testkit.h", "observe.h"}
    for header in ("tenrec.h", "rpc.h", "rref.h", "group.h", "log.h", "store.h", "observe.h", "profiler.h"):
        for name in sorted(reaches(header) & plugin_side):
            yield f"tenrec/{header} includes tenrec/{name}, which only plugins and explicit users need"


names = sorted(exported())
report.case("api_names_are_torchs_or_noun_and_verb", neither_rule(names))
report.case("api_has_the_names_of_torch", torch_is_missing(names))
report.case("api_pairs_rhyme", without_rhyme(names))
report.case("api_of_libtenrec_does_not_grow_unnoticed", too_many("tests/checks/libtenrec.symbols"))
report.case("api_forty_functions_exist", forty())
report.case("api_structs_can_grow_or_say_why_not", open_structs())
report.case("api_headers_of_programs_show_no_plugins", plugins_seen())
report.finish()
