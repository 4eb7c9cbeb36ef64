# SPDX-License-Identifier: Apache-2.0
"""commands.py TENREC BUILDDIR CC HELLO ELASTIC - the commands of README.md, CONTRIBUTING.md, SECURITY.md and docs/*.md run.

Each command of a block marked `sh` or `console` runs in a copy of the tree made
of links, where build and build/release are this build, ./program an example, mine.c the
plugin echo by that name, and each file that the page shows (a block whose first line is
"# NAME.yaml" or "/* NAME.c") exists. A command ends with 0 unless ENDS names another end, and
CANNOT lists the commands that need more than this machine, each with the reason.
docs/first-steps.md is one session of one shell, which first_steps.py runs.
A block without a mark that begins with a command, and a line of either table
that no page has, fail the check.
"""
import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

import report

sys.path.append(os.path.join(report.ROOT, "tests/tools"))
from ports import free_port  # pylint: disable=wrong-import-position

TENREC, BUILD, HELLO, ELASTIC = map(os.path.abspath, (sys.argv[1], sys.argv[2], *sys.argv[4:]))
CC = sys.argv[3]
SLOW = float(os.environ.get("TENREC_TEST_SLOW", "1"))
LIMIT_S = 60 * SLOW
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"(?:/\*|#) (\w+\.(?:c|yaml))\b")
COMMAND = re.compile(r"(tenrec|script/[\w/-]+|bench/\w+|meson|ninja|build/\S+|python3?|export|apt-get) ")

# Beginning of a command: why this check does not run it.
CANNOT = {
    "script/demo": "builds a release",
    "script/test": "runs all tests, and so this one",
    "script/ci/": "a job of CI: takes from ten minutes to hours, or needs root, a device, or a torch that pip finds",
    "script/bootstrap": "installs packages from the network",
    "script/fuzz": "fuzzes with clang; the replay of each corpus is a test",
    "script/tidy": "check_tidy runs it",
    "script/site": "check_site builds it",
    "script/soak": "runs for minutes; the test soak is a short form",
    "bench/": "measures for minutes; the tests tools_bench and tools_torch run it on small works",
    "meson setup": "builds the tree; the tests of bindings/torch run what it makes",
    "ninja": "builds the tree",
    "export PYTHONPATH=$PWD/build/torch": "belongs to a build with PyTorch",
    "python3 -m tenrec_torch": "needs PyTorch; bindings/torch/tests/program_test.py runs it",
    "TENREC_TORCH_DEFAULT=1": "needs PyTorch; bindings/torch/tests/program_test.py has the entry point",
    "pip install": "installs packages from the network; the test python_wheel makes the wheel",
    "apt-get": "installs packages from the network",
    "dpkg-buildpackage": "builds the packages; script/ci/package-test does, and runs the next two with them",
    "c++": "needs a C++ compiler; the test cpp compiles and runs the example",
    "tenrec run -n 4 --config config/default.yaml -- ./ring": "likewise",
    "gcc examples/hello.c": "needs the packages",
    "tenrec run -n 3 -- ./hello": "needs an installed Tenrec; script/ci/first-hello installs it",
    "tenrec run -n 3 -- python3": "likewise",
    "tenrec run -n 2 --config mine.yaml": "needs a backend that reaches other workers; install_outside runs one",
    "tenrec run -n 3 --config config/redis.yaml": "needs a Redis server; the test redis starts one",
    "tenrec ping --store redis:": "needs a Redis server; the test redis starts one",
    "tenrec run -n 3 --config config/etcd.yaml": "needs etcd; the test etcd starts it",
    "tenrec ping --store etcd:": "needs etcd; the test etcd starts it",
    "tenrec ping worker1 --store tcp://10.1.0.1": "needs two hosts; the test system_secret pings with a file on one",
    "tenrec run --elastic 2:8": "needs two hosts; the test tools_elastic joins on one",
    "tenrec run --elastic 1:4": "needs two hosts; the test tools_elastic joins on one",
    "tenrec top --sort": "runs until a signal; the test system_top ends it",
    "srun": "needs Slurm",
    "kubectl": "needs a cluster",
    "script/ci/kubernetes-test": "needs a cluster; examples_deploy runs it against a stub",
    "bpftrace": "needs root, and a process; check_probes holds the script against the probes",
}

# Beginning of a command: a plugin, or another file of the build, that a build may be without; the command does not run then.
NEEDS = {"tenrec check config/redis.yaml": "redis.so",
         "tenrec check config/kubernetes.yaml": "kubernetes.so",
         "tenrec check config/etcd.yaml": "etcd.so",
         "build/release/tools/tenrec run -n 3 -- python3": "../bindings/python/tenrec_rpc/_core.abi3.so"}

# Beginning of a command: variables that make its chance or its limit a test's, its exit status, a text that it prints.
ENDS = {
    "TENREC_BACKEND=faulty build/release": ({}, 1, "fails this CALL"),
    "TENREC_CONFIG=lossy.yaml": ({"TENREC_BACKENDS__FAULTY__SEED": "7"}, 0, "says 42"),
    "TENREC_CONFIG=lossy.yaml TENREC_BACKENDS": ({"TENREC_WORKER__RPC_TIMEOUT": "1s"}, 1, "hello: "),
    "build/release/tools/tenrec run": ({}, 0, "says 42"),
    "build/release/tools/tenrec run -n 5": ({}, 0, "from those of one process"),
    "build/release/tools/tenrec run -n 4": ({}, 0, "learner: version 60, mean reward"),
    "build/release/tools/tenrec run --elastic": ({}, 0, "trainer: worker2 is back"),
    "tenrec ping worker1": ({}, 0, "worker1"),
    "tenrec top --by-host": ({}, 0, "2 up"),
    "tenrec top --store tcp://127.0.0.1:29500 --once": ({}, 0, "worker1"),
    "tenrec top --store tcp://127.0.0.1:29500 --json": ({}, 0, '"workers"'),
    "tenrec set worker1 'backends.faulty": ({}, 1, "this worker uses no backend 'faulty'"),
}


def pages():
    return ["README.md", "CONTRIBUTING.md", "SECURITY.md"] + [p for p in report.files("docs", ends=(".md",)) if p != "docs/first-steps.md"]


def commands(block):
    """Commands of a block: lines without a comment behind them, continued ones joined, prompts left out."""
    for line in block.replace("\\\n", "").splitlines():
        line = re.sub(r"\s+# .*$", "", re.sub(r"^\w*\$ ", "", line)).strip()
        if line and not line.startswith("#"):
            yield line


def entry(table, command):
    """The longest key of a table with which a command begins."""
    return max((key for key in table if command.startswith(key)), key=len, default=None)


def executable(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)


def furnish(place):
    """Fills a folder with what a reader of the pages has."""
    for name in os.listdir(report.ROOT):
        if not name.startswith((".", "build")):
            os.symlink(os.path.join(report.ROOT, name), os.path.join(place, name))
    os.mkdir(os.path.join(place, "build"))
    os.symlink(BUILD, os.path.join(place, "build/release"))
    os.symlink(os.path.join(BUILD, "tests"), os.path.join(place, "build/tests"))
    os.mkdir(os.path.join(place, "bin"))
    os.symlink(TENREC, os.path.join(place, "bin/tenrec"))
    # The compiler may be named cc: it is looked for behind this folder, or the script would run itself for ever.
    executable(os.path.join(place, "bin/cc"), f"PATH=${{PATH#*:}}\nexec {shlex.join(json.loads(CC))} \"$@\"\n")
    executable(os.path.join(place, "program"), f"[ -z \"$TENREC_MIN_WORKERS\" ] || exec {ELASTIC} 100\nexec {HELLO}\n")
    with open(os.path.join(place, "mine.c"), "w", encoding="utf-8") as f:
        f.write(report.text("plugins/echo/echo.c").replace('.name = "echo"', '.name = "mine"'))
    with open(os.path.join(place, "bin/tenrec.pc"), "w", encoding="utf-8") as f:
        f.write(f"Name: tenrec\nDescription: this tree\nVersion: 0\nCflags: -I{report.ROOT}/include\n"
                f"Libs: -L{BUILD}/libtenrec -ltenrec -Wl,-rpath,{BUILD}/libtenrec\n")


def environment(place):
    plugins = os.environ.get("TENREC_PLUGIN_PATH", "")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TENREC_", "MASTER_")) and k not in ("RANK", "WORLD_SIZE")}
    return dict(env, PATH=f"{place}/bin:{env['PATH']}", PKG_CONFIG_PATH=f"{place}/bin", TENREC_PLUGIN_PATH=plugins)


@contextlib.contextmanager
def group(place, env):
    """Two workers that stay, and the port of their store."""
    port = free_port()
    with open(os.path.join(place, "group.log"), "w", encoding="utf-8") as log:
        workers = subprocess.Popen([TENREC, "run", "--elastic", "2:2", "--serve", f"127.0.0.1:{port}", "--", ELASTIC, "1000000000"],
                                   env=env, cwd=place, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + LIMIT_S
            while subprocess.run([TENREC, "ping", "worker1", "--store", f"tcp://127.0.0.1:{port}"], env=env, cwd=place,
                                 capture_output=True, timeout=LIMIT_S, check=False).returncode:
                if time.monotonic() > deadline or workers.poll() is not None:
                    raise OSError("the workers to be pinged did not start")
            yield port
        finally:
            workers.kill()
            workers.wait()


def available(command):
    """Whether this build has the plugin that a command needs."""
    plugin = NEEDS.get(entry(NEEDS, command))
    return not plugin or os.path.exists(os.path.join(BUILD, "plugins", plugin))


def run(command, place, env, where):
    """What is wrong with the end of a command."""
    more, wanted, text = ENDS.get(entry(ENDS, command), ({}, 0, ""))
    exports = re.match(r"export (\w+)=(.*)", command)
    if exports:
        env[exports[1]] = exports[2].replace("$PWD", place)
        return
    with group(place, env) if "127.0.0.1:29500" in command else contextlib.nullcontext(29500) as port:
        try:
            done = subprocess.run(["sh", "-c", command.replace("29500", str(port))], cwd=place, env={**env, **more},
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            yield f"{where}: runs for more than {LIMIT_S} s: {command}"
            return
    if done.returncode != wanted or text not in done.stdout:
        yield f"{where}: ends with {done.returncode}, expected {wanted} and '{text}': {command}"
        yield from done.stdout.splitlines()[-10:]


def blocks(page):
    text = report.text(page)
    for match in BLOCK.finditer(text):
        yield f"{page}:{text.count(chr(10), 0, match.start(2)) + 1}", match[1], match[2]


def unmarked(page):
    for where, language, code in blocks(page):
        if not language and COMMAND.match(code):
            yield f"{where}: a block of commands is marked `sh`"


def problems(page):
    with tempfile.TemporaryDirectory(prefix="tenrec-commands-") as place:
        furnish(place)
        env = environment(place)
        for where, language, code in blocks(page):
            named = FILE.match(code)
            if named:
                with open(os.path.join(place, named[1]), "w", encoding="utf-8") as f:
                    f.write(code)
            for command in commands(code) if language in ("sh", "console") else ():
                if entry(CANNOT, command) is None and available(command):
                    yield from run(command, place, env, where)


def unused():
    seen = [c for page in pages() for _, language, code in blocks(page) if language in ("sh", "console") for c in commands(code)]
    for table, name in (CANNOT, "CANNOT"), (ENDS, "ENDS"):
        for key in table:
            if not any(entry(table, c) == key for c in seen):
                yield f"tests/checks/commands.py: no page has the command '{key}' of {name}"


def main():
    report.case("commands_are_marked", [p for page in pages() for p in unmarked(page)])
    for page in pages():
        if any(language in ("sh", "console") for _, language, _ in blocks(page)):
            report.case(f"commands_of_{re.sub(r'[^a-z]+', '_', page.removesuffix('.md').lower())}_run", problems(page))
    report.case("commands_that_cannot_run_are_on_a_page", unused())
    report.finish()


main()
