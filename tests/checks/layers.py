# SPDX-License-Identifier: Apache-2.0
"""layers.py - include directions, and the users of each foreign library.

docs/architecture.md says why: a room knows only the rooms that its table names, a plugin knows the public headers and itself, and
a foreign library is a detail of the few files named here.
"""
import collections
import fnmatch
import os
import re

import report

# The files that may include a header that is neither ours nor of the C library.
FOREIGN = {
    "yaml.h": ["core/config/*.c"],
    "dlfcn.h": ["core/plugin/loader.c", "observe/recorder/stack.c", "tools/conformance/heap_count.c", "plugins/tensorpipe/cuda/driver.c"],
    "uv.h": ["core/base/loop.[ch]", "group/store/store_tcp_server.c", "group/store/store_peer*.[ch]"],
    "jansson.h": ["tools/*.c", "tools/conformance/report.h", "plugins/store/http.h"],
    "dlpack/dlpack.h": ["core/tensor/*.c", "bindings/python/src/*.c"],
    "hiredis/hiredis.h": ["plugins/redis/conn.h"],
    "curl/curl.h": ["plugins/store/http.c", "plugins/otlp/collector.c", "plugins/otlp/post.c"],
    "microhttpd.h": ["plugins/prometheus/endpoint.c"],
    "x86intrin.h": ["core/base/clock_fast.h"],
    "ucp/api/ucp.h": ["plugins/ucx/ucx.h", "tests/ucx/stranger.c"],
    "xxh*.h": ["rpc/gather/participants.c", "rpc/weights/piece_checksum.c"],
    "openssl/*.h": ["security/secret/crypto.c", "security/tls/*.[ch]", "plugins/redis/tls.c"],
    "execinfo.h": ["observe/recorder/stack.c"],
    "ucontext.h": ["observe/recorder/stack.c"],
    "malloc.h": ["core/base/heap.c", "tools/conformance/heap_*.c"],
    "curses.h": ["tools/top/screen.c", "tools/top/paint.c"],
    "term.h": ["tools/top/screen.c"],
    "emmintrin.h": ["plugins/tensorpipe/transport/ring/copy.c"],
    # With HASH_FUNCTION, a hash with a key: peers choose most keys of tables.
    "uthash.h": ["core/base/hash.h", "plugins/faulty/counts.c"],
    "utlist.h": [*(f"{folder}/*/*.[ch]" for folder in report.LIBRARY), "plugins/*/*.[ch]"],
}
AT_MOST = {"yaml.h": 1, "jansson.h": 12}

SYSTEM = re.compile(r"(sys|netinet|net|arpa|linux|bits)/|"
                    r"(assert|ctype|endian|errno|fcntl|float|inttypes|limits|locale|math|poll|pthread|"
                    r"sched|setjmp|signal|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|"
                    r"stdlib|stdnoreturn|string|strings|syslog|termios|threads|time|unistd|getopt|"
                    r"netdb|semaphore|dirent|ifaddrs|fnmatch|glob|libgen|elf|link|wordexp|spawn|langinfo|wchar)\.h$")


def includes(path):
    code = report.without_comments(report.text(path))
    for number, line in report.lines(path, code):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield f"{path}:{number}", match[1] == '"', match[2]


def check_rooms():
    table = report.rooms("")
    for path in report.files(*report.LIBRARY):
        room = report.room_of(path, "", table)
        if not room: # public headers
            continue
        for where, quoted, name in includes(path):
            if quoted and report.room_of(name, "", table) not in table[room] | {room}:
                yield f'{where}: {room} may not know "{name}"'


# Without a face: core/base, a library of small tools.
FACELESS = {"core/base"}
PRIVATE_MAX = 3


def face(room):
    """The header with what other rooms use."""
    return f"{room}/{os.path.basename(room)}.h"


def private_headers():
    """{(room, other): headers of the other that the room includes, but for its face}."""
    table = report.rooms("")
    used = collections.defaultdict(set)
    for path in report.files(*report.LIBRARY):
        room = report.room_of(path, "", table)
        for _, quoted, name in includes(path):
            other = report.room_of(name, "", table) if quoted else ""
            if room and other not in ("", room, "core/base") and name != face(other):
                used[room, other].add(name)
    return used


def check_faces():
    for room in report.rooms(""):
        if os.path.exists(os.path.join(report.ROOT, face(room))) == (room in FACELESS):
            yield f"{room}: " + (f"has {face(room)}, and is in FACELESS" if room in FACELESS else f"declare in {face(room)} what other rooms use")
    for (room, other), headers in sorted(private_headers().items()):
        if len(headers) > PRIVATE_MAX:
            yield f"{room} includes {len(headers)} private headers of {other}, {PRIVATE_MAX} may be: {' '.join(sorted(headers))}"


def check_folders():
    for room, others in report.rooms("").items():
        for other in sorted(others):
            if report.stands_above(other, room):
                yield f"rooms: {room} may not use {other}, whose folder is above its own"


def check_public():
    for path in report.files("include", "testkit"):
        for where, quoted, name in includes(path):
            if quoted and not name.startswith("testkit/"):
                yield f'{where}: includes <tenrec/...>, not "{name}"'


# Files of the core that a plugin compiles, too: the only writer of JSON, the only clock.
SHARED = {"plugins/otlp": {"core/base/json.h", "core/base/clock.h"}} | {
    f"plugins/{name}": {"core/base/clock.h"} for name in ("faulty", "prometheus", "store", "tensorpipe", "ucx")} | {
    # plugins/store is no plugin: it has what those of stores have in common.
    f"plugins/{name}": {"core/base/clock.h", "store/draw.h", "store/keeper.h", "store/login.h", "store/turn.h", "store/url.h"} | more
    for name, more in (("redis", set()), ("etcd", {"store/asker.h", "store/base64.h", "store/sum.h"}),
                       ("kubernetes", {"store/asker.h", "store/base64.h", "store/http.h", "store/sum.h"}))}


def check_plugins():
    for path in report.files("plugins", "examples"):
        own = "/".join(path.split("/")[:2])
        # As the compiler looks: beside the file, then from the plugin's folder.
        folders = (os.path.dirname(path), own)
        for where, quoted, name in includes(path):
            if not quoted:
                continue
            if name in SHARED.get(own, ()):
                continue
            targets = [os.path.normpath(os.path.join(folder, name)) for folder in folders]
            if not any(target.startswith((own, "examples")) and
                       os.path.exists(os.path.join(report.ROOT, target)) for target in targets):
                yield f'{where}: "{name}" is not a file of its own'


def check_agent():
    for path in report.files("plugins/tensorpipe"):
        if os.path.dirname(path) in ("plugins/tensorpipe", "plugins/tensorpipe/agent"):
            continue
        for where, quoted, name in includes(path):
            if quoted and name.startswith("agent/"):
                yield f'{where}: what stands below agent/ knows endpoint.h, not "{name}"'


def check_foreign():
    users = {}
    for path in report.files(*report.LIBRARY, "plugins", "tools"):
        for where, quoted, name in includes(path):
            if quoted or name.startswith("tenrec/") or SYSTEM.match(name):
                continue
            rule = next((r for r in FOREIGN if fnmatch.fnmatch(name, r)), None)
            if rule is None:
                yield f"{where}: <{name}> is in no rule of tests/checks/layers.py"
            elif not any(fnmatch.fnmatch(path, p) for p in FOREIGN[rule]):
                yield f"{where}: <{name}> belongs into {' or '.join(FOREIGN[rule])}"
            users.setdefault(rule, set()).add(path)
    for name, most in AT_MOST.items():
        if len(users.get(name, ())) > most:
            yield f"<{name}> is known to {len(users[name])} files, not {most}: " + \
                ", ".join(sorted(users[name]))


def check_keyed():
    for path in report.files(*report.LIBRARY, "plugins", "tools", "bindings"):
        code = report.text(path)
        at = code.find("#include <uthash.h>")
        if at >= 0 and "#define HASH_FUNCTION" not in code[:at]:
            yield f"{path}: <uthash.h> without a HASH_FUNCTION before it: a peer can choose keys that collide"


def check_names():
    for path in report.files(*report.LIBRARY):
        code = report.without_comments(report.text(path))
        for number, line in report.lines(path, code):
            match = re.search(r"\b(tensorpipe|faulty|prometheus|otlp)\b", line)
            if match:
                yield f"{path}:{number}: the core knows no plugin, and names '{match[0]}'"


# They hand the whole environment on, or leave it alone in a setuid program.
ENVIRON = {"core/config/environment.c", "tools/run/spawn.c"}


def check_environment():
    for path in report.files(*report.LIBRARY, "plugins", "tools"):
        code = report.without_comments(report.text(path))
        for number, line in report.lines(path, code):
            if re.search(r"\bgetenv\s*\(", line):
                yield f"{path}:{number}: getenv obeys the caller of a setuid program: use secure_getenv"
            if re.search(r"\benviron\b", line) and path not in ENVIRON and "#" not in line:
                yield f"{path}:{number}: only {' and '.join(sorted(ENVIRON))} read all variables"


CORE_LINES, CORE_ROOMS = 13000, 7 # of code, without blank lines and comments


def check_core_size():
    code = sum(bool(line.strip()) for path in report.files("core") for _, line in report.lines(path, report.without_comments(report.text(path))))
    if code > CORE_LINES:
        yield f"core has {code} lines of code, {CORE_LINES} may be: what does not load backends or move messages belongs above it"
    rooms = [room for room in report.rooms("") if room.startswith("core/")]
    if len(rooms) > CORE_ROOMS:
        yield f"core has {len(rooms)} rooms, {CORE_ROOMS} may be: {' '.join(rooms)}"


report.case("layers_core_is_small", check_core_size())
report.case("layers_rooms_include_what_the_table_allows", check_rooms())
report.case("layers_rooms_use_faces_and_few_private_headers", check_faces())
report.case("layers_rooms_use_no_folder_above_their_own", check_folders())
report.case("layers_public_headers_and_testkit_know_no_room", check_public())
report.case("layers_plugins_include_public_and_own", check_plugins())
report.case("layers_nothing_below_includes_agent", check_agent())
report.case("layers_foreign_headers_are_confined", check_foreign())
report.case("layers_tables_have_a_keyed_hash", check_keyed())
report.case("layers_core_names_no_plugin", check_names())
report.case("layers_environment_is_read_securely", check_environment())
report.finish()
