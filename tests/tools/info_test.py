# SPDX-License-Identifier: Apache-2.0
"""info_test.py TENREC - the contract of `tenrec info`, `help` and `--version`."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from cases import contains, environment, equal, main, one_line, run, true

TENREC = os.path.abspath(sys.argv[1])
FIXTURES = os.path.abspath(sys.argv[2])

CONFIG = """backend: faulty
backends:
  echo: { plugin: echo, options: { refuse: true } }
  faulty: { plugin: faulty, wraps: echo }
"""


def info(*args, env=None):
    got = run(TENREC, "info", "--json", *args, env=env)
    equal((got.returncode, got.stderr), (0, ""))
    return json.loads(got.stdout)


def with_config(text, env=None):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(text)
        f.flush()
        values = {v["key"]: v for v in info("--config", f.name, env=env)["values"]}
        return values, f.name


def backend(name, env=None):
    found = [b for b in info(env=env)["backends"] if b["name"] == name]
    equal(len(found), 1, f"backends called {name}")
    return found[0]


def info_lists_the_plugins_of_its_folders():
    echo = backend("echo")
    true(echo["path"].endswith("/echo.so"), f"path is {echo['path']}")
    true(echo["version"] and echo["summary"] and echo["abi"], f"something is missing: {echo}")
    true("loopback_only" in echo["flags"], f"flags are {echo['flags']}")
    true("wraps" in backend("faulty")["flags"], "faulty does not say that it wraps")


def info_names_the_searched_folders():
    with tempfile.TemporaryDirectory() as folder:
        env = environment(TENREC_PLUGIN_PATH=f"{folder}:/nowhere")
        got = run(TENREC, "info", "--json", env=env)
        equal(json.loads(one_line(got.stdout))["folders"][:2], [folder, "/nowhere"])
        contains(one_line(got.stderr), "names '/nowhere', which is no folder")
        contains(run(TENREC, "info", env=env).stdout, f"0 backends; plugin folders: {folder}, ")


def info_tells_type_default_and_help_of_every_option():
    for b in info()["backends"]:
        for option in b["options"]:
            true(option["name"] and option["type"] and option["help"], f"incomplete: {option}")
            true(isinstance(option["default"], str), f"no default: {option}")
    equal({o["name"]: o["default"] for o in backend("echo")["options"]}["refuse"], "false")


def info_tells_the_keys_of_a_list_of_maps():
    rules = next(o for o in backend("faulty")["options"] if o["name"] == "rules")
    equal(rules["type"], "list of maps")
    keys = {k["name"]: k for k in rules["keys"]}
    equal((keys["probability"]["type"], keys["probability"]["default"]), ("number", "1"))
    true("drop" in keys["do"]["choices"], keys["do"]["choices"])
    contains(run(TENREC, "info").stdout, "    rules[].probability    number, default 1, 0 to 1")


def info_tells_the_security_mode_in_force_and_its_source():
    values, _ = with_config(CONFIG)
    equal((values["security"]["value"], values["security"]["source"]), ("none", "default"))
    values, name = with_config(CONFIG + "security: { mode: none }\n")
    equal((values["security"]["value"], values["security"]["source"]), ("none", f"{name}:5:19"))


def info_says_which_transports_and_channels_work_here():
    tensorpipe = backend("tensorpipe")
    for kind, works, not_here in (("transports", "uv", ("ibv",)),
                                  ("channels", "basic", ("xth", "cuda_gdr"))):
        rows = {row["name"]: row for row in tensorpipe[kind]}
        true(rows[works]["viable"], f"{works} does not work: {rows[works]}")
        for name in not_here:
            equal((rows[name]["viable"], rows[name]["reason"]), (False, "this build does not have it"))
    for name in ("cuda_xth", "cuda_ipc", "cuda_basic"):
        row = rows[name]
        true(row["viable"] or "CUDA" in row["reason"] or "cu" in row["reason"], f"{row}")


def info_says_why_a_plugin_cannot_be_used():
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/broken.so", "w", encoding="ascii") as f:
            f.write("no plugin\n")
        shutil.copy(backend("echo")["path"], folder)
        env = environment(TENREC_PLUGIN_PATH=folder)
        bad = info(env=env)["unusable"]
        equal([os.path.basename(b["path"]) for b in bad], ["broken.so"])
        true(bad[0]["reason"], "no reason is given")
        backend("echo", env)
        shown = run(TENREC, "info", env=env)
        equal(shown.returncode, 0, "exit status")
        contains(shown.stdout, "broken.so")


def info_lists_plugins_as_unusable_when_their_options_are_wrong():
    with tempfile.TemporaryDirectory() as folder:
        for name in ("crashes", "option_default"):
            shutil.copy(f"{FIXTURES}/{name}.so", folder)
        env = environment(TENREC_PLUGIN_PATH=folder)
        bad = {os.path.basename(b["path"]): b["reason"] for b in info(env=env)["unusable"]}
        contains(bad["crashes.so"], "is killed by signal 6")
        contains(bad["option_default.so"], "'many'")
        equal([b["name"] for b in info(env=env)["backends"] if b["name"] in ("crashes", "option_default")], [])


def info_names_a_plugin_whose_probe_crashes():
    with tempfile.TemporaryDirectory() as folder:
        for path in (f"{FIXTURES}/bad_probe.so", backend("echo")["path"]):
            shutil.copy(path, folder)
        env = environment(TENREC_PLUGIN_PATH=folder)
        contains(backend("bad_probe", env)["probe_error"], "its probe is killed by signal 6")
        backend("echo", env)
        contains(run(TENREC, "info", env=env).stdout, "  not known   its probe is killed by signal 6")


def info_tells_the_build_of_a_plugin():
    echo = backend("echo")
    notes = subprocess.run(["readelf", "-n", echo["path"]], capture_output=True, text=True, check=True).stdout
    contains(notes, f"Build ID: {echo['build_id']}")
    true(len(echo["build_id"]) >= 16, f"a build id of {len(echo['build_id'])} digits")


def info_warns_of_a_plugin_folder_that_other_users_can_write():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        got = run(TENREC, "info", "--json", env=environment(TENREC_PLUGIN_PATH=folder))
        contains(one_line(got.stderr), f"plugins: other users can put plugins into '{folder}'")
        os.chmod(folder, 0o755)
        equal(run(TENREC, "info", "--json", env=environment(TENREC_PLUGIN_PATH=folder)).stderr, "")


def info_tells_every_key_of_the_worker():
    keys = {o["name"]: o for o in info()["worker"]}
    for name in ("rpc_timeout", "rref_retry_gap", "device_maps"):
        true(keys[name]["help"], f"no help for {name}")
    equal(keys["rpc_timeout"]["default"], "60s")
    shown = run(TENREC, "info").stdout
    contains(shown, "    heartbeat_misses ")


def info_shows_the_values_in_force_and_their_source():
    values, name = with_config(CONFIG, environment(TENREC_BACKEND="echo"))
    equal(values["backend"]["value"], "echo")
    equal(values["backend"]["source"], "environment TENREC_BACKEND")
    equal(values["backends.echo.options.refuse"]["value"], "true")
    equal(values["backends.echo.options.refuse"]["source"], f"{name}:3:44")
    equal(values["backends.faulty.options.num_fail_sends"]["source"], "default")
    equal(values["worker.rpc_timeout"]["source"], "default")


def info_lists_stores_apart_from_backends():
    got = info()
    equal([s["name"] for s in got["stores"] if s["name"] == "drawer"], ["drawer"])
    true("drawer" not in [b["name"] for b in got["backends"]], "a store among the backends")
    true(not any("drawer" in u["path"] for u in got["unusable"]), "a store is called unusable")
    drawer = next(s for s in got["stores"] if s["name"] == "drawer")
    equal([(o["name"], o["default"]) for o in drawer["options"]], [("most", "1000000")])
    values, name = with_config("stores: { notes: { plugin: drawer, options: { most: 4 } } }\n" + CONFIG)
    equal(values["stores.notes.options.most"]["value"], "4")
    equal(values["stores.notes.options.most"]["source"], f"{name}:1:53")


def info_never_prints_a_password():
    values, _ = with_config("init_method: tcp://me:hunter2@127.0.0.1:1\n" + CONFIG)
    true("hunter2" not in values["init_method"]["value"], f"printed: {values['init_method']}")


def info_shows_people_the_same():
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(CONFIG)
        f.flush()
        got = run(TENREC, "info", "--config", f.name)
        equal((got.returncode, got.stderr), (0, ""))
        for part in ("echo", "refuse", "num_fail_sends", f"{f.name}:3:44", "rpc_timeout"):
            contains(got.stdout, part)


def info_refuses_a_wrong_config():
    for text, part in (("backend: nosuch\n" + CONFIG[16:], "'nosuch'"),
                       (CONFIG.replace("true", "maybe"), ":3:44:")):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            f.write(text)
            f.flush()
            got = run(TENREC, "info", "--config", f.name)
            equal((got.returncode, got.stdout), (1, ""))
            contains(one_line(got.stderr), part)


def info_fails_when_its_output_is_not_writable():
    with open("/dev/full", "w", encoding="ascii") as full:
        for more in ([], ["--json"]):
            got = run_to(full, "info", *more)
            equal(got.returncode, 1, "exit status")
            equal(one_line(got.stderr), "tenrec: cannot write to stdout: No space left on device\n")


def run_to(file, *args):
    return subprocess.run([TENREC, *args], stdout=file, stderr=subprocess.PIPE, text=True,
                          env=environment(), timeout=60, check=False)


def info_refuses_unknown_words():
    for args in (["x", "--worker", "w"], ["--jsn"], ["--config"]):
        got = run(TENREC, "info", *args)
        equal((got.returncode, got.stdout), (2, ""))
        contains(one_line(got.stderr), "tenrec help info")
    contains(run(TENREC, "info", "--confg=x").stderr, "'--confg' (did you mean '--config'?)")
    contains(run(TENREC, "inof").stderr, "'inof' (did you mean 'info'?)")


def info_shows_one_plugin_or_part():
    echo = backend("echo")["path"]
    for name in "echo", echo:
        got = info(name)
        equal([b["name"] for b in got["backends"]], ["echo"])
        equal((got["stores"], got["observers"], "worker" in got), ([], [], False))
    got = run(TENREC, "info", "echo")
    equal((got.returncode, got.stderr), (0, ""))
    contains(got.stdout, "refuse ")
    true(len(got.stdout.splitlines()) < 15, got.stdout)
    got = info("worker", "faulty")
    equal(([b["name"] for b in got["backends"]], "worker" in got, "observe" in got), (["faulty"], True, False))
    got = run(TENREC, "info", "ecoh")
    equal((got.returncode, got.stdout), (1, ""))
    contains(one_line(got.stderr), "no plugin 'ecoh' (did you mean 'echo'?)")
    contains(one_line(run(TENREC, "info", "nothing_like_it").stderr), "(known: ")
    contains(one_line(run(TENREC, "info", f"{FIXTURES}/crashes.so").stderr), "is killed by signal 6")


def info_help_tells_every_command():
    overview = run(TENREC, "help")
    equal((overview.returncode, overview.stderr), (0, ""))
    for command in ("info", "check", "run", "perf", "ping"):
        contains(overview.stdout, f"  {command} ")
        for args in (["help", command], [command, "--help"], [command, "-h"]):
            got = run(TENREC, *args)
            equal((got.returncode, got.stderr), (0, ""))
            contains(got.stdout, f"usage: tenrec {command} ")
    equal(run(TENREC, "--help").stdout, overview.stdout)


def info_version_is_told():
    got = run(TENREC, "--version")
    equal(got.returncode, 0, "exit status")
    true(got.stdout.startswith("tenrec 0."), f"version is {got.stdout!r}")
    equal(info()["version"], got.stdout.split()[1])


def info_refuses_an_unknown_command():
    for args, part in ((["nosuch"], "'nosuch'"), (["help", "nosuch"], "'nosuch'")):
        got = run(TENREC, *args)
        equal((got.returncode, got.stdout), (2, ""))
        contains(one_line(got.stderr), part)
    got = run(TENREC)
    equal((got.returncode, got.stdout), (2, ""))
    contains(got.stderr, "usage: tenrec COMMAND")


def info_shows_the_counts_of_a_store():
    got = run(TENREC, "run", "-n", "1", "--", "sh", "-c", f"{TENREC} info --json --store tcp://$MASTER_ADDR:$MASTER_PORT")
    equal(got.returncode, 0, f"exit status, with {got.stderr!r}")
    counts = json.loads("".join(line.split("] ", 1)[-1] for line in got.stdout.splitlines()))
    true(counts["store"].startswith("tcp store "), f"counts are {counts}")
    true(counts["requests"] >= 2, f"counts are {counts}")


main(globals(), "info_")
