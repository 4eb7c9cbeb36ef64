# SPDX-License-Identifier: Apache-2.0
"""check_test.py TENREC - the contract of `tenrec check`."""
import json
import os
import shutil
import sys
import tempfile

from cases import contains, environment, equal, main, one_line, run, true

TENREC = os.path.abspath(sys.argv[1])
FIXTURES = os.path.abspath(sys.argv[2])
PLUGINS = os.environ["TENREC_PLUGIN_PATH"].split(":")[0]

GOOD = """backend: faulty
backends:
  echo: { plugin: echo, options: { refuse: true } }
  faulty: { plugin: faulty, wraps: echo, options: { num_fail_sends: 2 } }
"""


def check(text, env=None):
    """Exit status, stdout and stderr, where F stands for the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.yaml"
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        got = run(TENREC, "check", path, env=env)
        return got.returncode, got.stdout.replace(path, "F"), got.stderr.replace(path, "F")


def refused(text, place, part, env=None):
    status, out, errors = check(text, env)
    equal((status, out), (1, ""))
    true(one_line(errors).startswith(place), f"{errors!r} does not begin with {place!r}")
    contains(errors, part)


def check_accepts_a_good_config():
    status, out, errors = check(GOOD)
    equal((status, errors), (0, ""))
    contains(out, "F: ok, 2 backends: echo, faulty (wraps echo); security: none (default)")


MISTAKES = """wroker: {}
worker: { nam: x, num_worker_threads: many, rank: 5, world_size: 3 }
init_method: tcp://host
backend: faulti
backends:
  echo: { plugin: echo, options: { refuze: true, refuse: maybe } }
  faulty:
    plugin: faulty
    wraps: ech
    dealy: 1
    options: { num_fail_sends: -1, dealy: 2, rules: [{ do: dorp }, { do: drop }, { dp: drop, do: drop }, { do: drop, on: [CAL] }] }
  bad: { plugin: eco, options: { any: 1 } }
  again: { plugin: faulty, wraps: bad }
stores: { tcp: { plugin: drawer } }
security: { mode: secrt, allow: [{ function: f, form: any_member }, { from: any_one }] }
observe: { durations: 7 }
"""
MISTAKEN = ["1:1: unknown key 'wroker'", "2:11: worker: has no key 'nam'", "2:39: worker.num_worker_threads", "2:51: worker.rank: 5",
            "3:14: init_method", "4:10: backend 'faulti'", "6:36: backend 'echo': has no option 'refuze'", "6:58: backend 'echo': option 'refuse'",
            "9:12: backend 'faulty': wraps 'ech'", "10:5: backend 'faulty': unknown key 'dealy'", "11:32: backend 'faulty': option 'num_fail_sends'",
            "11:36: backend 'faulty': has no option 'dealy'", "11:60: backend 'faulty': option 'rules', item 1: 'do'",
            "11:84: backend 'faulty': option 'rules', item 3: has no key 'dp'", "11:123: backend 'faulty': option 'rules', item 4: 'on'",
            "12:18: backend 'bad': no plugin 'eco'", "14:11: store 'tcp'", "15:19: security.mode", "15:49: security.allow, item 1: has no key 'form'",
            "15:69: security.allow", "16:23: observe.durations"]


def check_tells_every_mistake_once():
    status, out, errors = check(MISTAKES)
    equal((status, out), (1, ""))
    for line, wanted in zip(errors.splitlines(), MISTAKEN):
        true(line.startswith(f"F:{wanted}"), f"{line!r} is not about {wanted!r}, of:\n{errors}")
    true(len(errors.splitlines()) >= len(MISTAKEN), f"{len(errors.splitlines())} lines: {errors}")


def check_prints_json_on_one_line():
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.yaml"
        for text, mistakes in (GOOD, []), (GOOD.replace("refuse", "refuze").replace("2", "many"), [(3, 36), (4, 69)]):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            got = run(TENREC, "check", "--json", path)
            told = json.loads(one_line(got.stdout))
            equal((got.returncode, got.stderr, told["valid"]), (int(bool(mistakes)), "", not mistakes))
            equal([(m["line"], m["column"]) for m in told["mistakes"]], mistakes)
        equal([b["name"] for b in json.loads(run(TENREC, "check", "--json", "-", input=GOOD).stdout)["backends"]], ["echo", "faulty"])


def plugin_is_here(name):
    return any(os.path.exists(f"{d}/{name}.so") for d in os.environ["TENREC_PLUGIN_PATH"].split(":"))


def check_asks_plugins_about_their_addresses():
    for plugin, text, place, part in (("prometheus", 'observe: { metrics: "127.0.0.1:99999" }\n', "F:1:21: observe.metrics: ", "'127.0.0.1:99999'"),
                                      ("prometheus", 'observe: { metrics: ":9464" }\n', "F:1:21: observe.metrics: ", "expected an address"),
                                      ("otlp", "observe: { traces: htp://collector }\n", "F:1:20: observe.traces: ", "expected http://"),
                                      ("redis", "init_method: redis://a:99999\n", "F:1:14: init_method: ", "port"),
                                      ("etcd", "init_method: etcd://me:hunter2@a:b\n", "F:1:14: init_method: ", "port")):
        if plugin_is_here(plugin):
            refused(text + GOOD, place, part)
            true("hunter2" not in check(text + GOOD)[2], "a password is printed")
    if plugin_is_here("prometheus"):
        equal(check('observe: { metrics: "127.0.0.1:9464" }\n' + GOOD)[::2], (0, ""))
        refused(GOOD, "tenrec check: environment TENREC_OBSERVE__METRICS: observe.metrics: ", "'x'", environment(TENREC_OBSERVE__METRICS="x"))


def check_warns_of_a_folder_that_is_not_there():
    env = environment(TENREC_PLUGIN_PATH=f"/nonexistent:{os.environ['TENREC_PLUGIN_PATH']}")
    status, _, errors = check(GOOD, env)
    equal(status, 0)
    contains(one_line(errors), "TENREC_PLUGIN_PATH names '/nonexistent', which is no folder")


def check_lists_what_there_is_unless_a_name_is_near():
    refused(GOOD.replace("backend: faulty", "backend: nope"), "F:1:10: ", "is not in 'backends' (known: echo, faulty)")
    refused(GOOD.replace("num_fail_sends: 2", "dealy: 2"), "F:4:", "(known: messages_to_fail, num_fail_sends,")
    refused(GOOD.replace("options: { num_fail_sends: 2 }", "dealy: 2"), "F:4:", "an option of the plugin belongs under 'options'")
    status, _, errors = check("init_method: http://x\n" + GOOD)
    equal(status, 1)
    contains(one_line(errors), "no plugin 'http' (known: ")


def check_tells_the_security_mode_and_its_source():
    contains(check(GOOD + "security: { mode: none }\n")[1], "; security: none (F:5:19)")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/job.key"
        equal(run(TENREC, "secret", "new", path).returncode, 0, "exit status")
        contains(check(GOOD, environment(TENREC_SECRET_FILE=path))[1], "; security: secret (TENREC_SECRET_FILE)")
        contains(check(GOOD + f"security: {{ secret_file: {path} }}\n")[1], "; security: secret (F:5:26)")
    refused(GOOD + "security: { secret_file: /nonexistent/key }\n", "F:5:26: ", "/nonexistent/key")
    refused(GOOD, "tenrec check: environment TENREC_SECRET_FD", "closed", environment(TENREC_SECRET_FD="77"))


def check_names_the_place_of_an_unknown_key():
    refused("bakend: echo\n" + GOOD, "F:1:1: ", "'backend'")


def check_names_the_place_of_an_unknown_option():
    refused(GOOD.replace("refuse", "refuze"), "F:3:36: ", "did you mean 'refuse'")


def check_names_the_place_of_a_wrong_value():
    refused(GOOD.replace("true", "maybe"), "F:3:44: ", "'maybe'")


def check_skips_ways_that_are_known_and_not_here():
    text = "backends: { tensorpipe: { plugin: tensorpipe, options: { transports: [%s], channels: [%s] } } }\n"
    equal(check(text % ("shm, uv", "cma, basic"))[0], 0, "exit status")
    for ways, part in ((("ibv", "basic"), "transports: none is left that can be used here (ibv: this"),
                       (("uv", "xth"), "channels: none is left that can be used here (xth: this"),
                       (("uv", ""), "channels: none is left that can be used here (the list is empty)"),
                       (("smh", "basic"), "found 'smh' (did you mean 'shm'?)")):
        refused(text % ways, "F:1:", part)


def check_names_the_place_of_a_key_that_is_there_twice():
    refused(GOOD + "backend: echo\n", "F:5:1: ", "backend")


def check_names_the_place_of_broken_yaml():
    refused("backend: [echo\n", "F:", "")
    refused("backend: echo\n\tbackends: x\n", "F:2:", "")


def check_names_the_place_of_a_missing_plugin():
    refused(GOOD.replace("plugin: echo", "plugin: eco"), "F:3:19: ", "did you mean 'echo'")


def check_names_the_place_of_a_malformed_init_method():
    for method, part in (("http//x", "expected env://, tcp://HOST:PORT"),
                         ("http://x", "store 'http': no plugin 'http'"),
                         ("tcp://host", '"host" is no host:port'),
                         ("tcp://a:1?rank=x", 'rank="x"'),
                         ("file://", "expected file://path"),
                         ("tcp://me:hunter2@a:1", '"tcp://me:***@a:1": expected host:port')):
        refused(f"init_method: {method}\n" + GOOD, "F:1:14: ", part)


def check_refuses_a_backend_that_is_not_there():
    refused(GOOD.replace("backend: faulty", "backend: fault"), "F:1:10: ", "'faulty'")


def check_refuses_to_wrap_a_missing_backend():
    refused(GOOD.replace("wraps: echo", "wraps: ech"), "F:4:36: ", "'echo'")


def check_refuses_a_wrapper_without_anything_inside():
    refused(GOOD.replace(" wraps: echo,", ""), "F:4:3: ", "wraps")


def check_refuses_wraps_of_a_plugin_that_is_no_wrapper():
    refused("backend: a\nbackends:\n  a: { plugin: echo, wraps: b }\n  b: { plugin: echo }\n",
            "F:3:", "wraps nothing")


def check_refuses_a_ring():
    refused(GOOD.replace("plugin: echo,", "plugin: echo, wraps: faulty,"), "F:", "wraps itself")


def check_refuses_a_file_that_is_no_plugin():
    refused(GOOD.replace("plugin: echo", "plugin: /etc/passwd"), "F:3:19: ", "/etc/passwd")


def check_refuses_a_wrong_setting_of_the_worker():
    refused("worker: { rpc_timeout: 60 }\n" + GOOD, "F:1:24: ", "60")


def check_takes_an_empty_file_for_the_defaults():
    status, out, errors = check("")
    equal((status, errors), (0, ""))
    contains(out, "tensorpipe")


def check_refuses_a_file_that_is_not_there():
    got = run(TENREC, "check", "/nonexistent/a.yaml")
    equal((got.returncode, got.stdout), (1, ""))
    contains(one_line(got.stderr), "/nonexistent/a.yaml")


def check_looks_at_the_environment_too():
    refused(GOOD, "tenrec check: environment TENREC_BACKEND",
            "'nosuch'", environment(TENREC_BACKEND="nosuch"))
    refused(GOOD, "tenrec check: environment TENREC_BACKENDS__ECHO__REFUSE", "'x'",
            environment(TENREC_BACKENDS__ECHO__REFUSE="x"))


def check_accepts_every_config_that_is_shipped():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../config")
    files = sorted(name for name in os.listdir(folder) if name.endswith(".yaml"))
    true("default.yaml" in files, f"no default.yaml among {files}")
    for plugin in "etcd", "kubernetes", "redis", "ucx":
        if not any(os.path.exists(os.path.join(d, plugin + ".so"))
                   for d in os.environ["TENREC_PLUGIN_PATH"].split(":")):
            files.remove(plugin + ".yaml")  # built without its library
    for name in files:
        got = run(TENREC, "check", os.path.join(folder, name))
        equal((name, got.returncode, got.stderr), (name, 0, ""))


def check_looks_at_stores():
    good = "init_method: notes://x\nstores:\n  notes: { plugin: drawer, options: { most: 3 } }\n" + GOOD
    status, output, errors = check(good)
    equal((status, errors), (0, ""))
    contains(output, "; 1 store: notes")
    refused(good.replace("most: 3", "most: 0"), "F:3:45: ", "store 'notes': option 'most'")
    refused(good.replace("most:", "mots:"), "F:3:39: ", "did you mean 'most'")
    refused(good.replace("plugin: drawer", "plugin: drower"), "F:3:20: ", "did you mean 'drawer'")
    refused(good.replace("plugin: drawer", "plugin: echo"), "F:3:20: ",
            "is a backend (kind 1), expected a store")
    refused(good.replace("notes://", "nodes://"), "F:1:14: ", "store 'nodes': no plugin 'nodes'")
    refused(GOOD.replace("plugin: echo", "plugin: drawer"), "F:3:19: ",
            "is a store (kind 2), expected a backend")


def check_names_a_plugin_that_crashes_or_hangs():
    for name, part in (("crashes", "is killed by signal 6"), ("hangs", "does not return within")):
        refused(f"backend: x\nbackends: {{ x: {{ plugin: {FIXTURES}/{name}.so }} }}\n", "F:2:26: backend 'x': ", part)


def check_names_the_entry_when_a_default_does_not_parse():
    refused(f"backend: x\nbackends: {{ x: {{ plugin: {FIXTURES}/option_default.so }} }}\n", "F:2:26: backend 'x': ", "'many'")


def check_finds_a_plugin_beside_the_file():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(f"{PLUGINS}/echo.so", f"{folder}/mine.so")
        for plugin in ("./mine.so", "mine.so"):
            with open(f"{folder}/a.yaml", "w", encoding="ascii") as f:
                f.write(f"backend: e\nbackends: {{ e: {{ plugin: {plugin} }} }}\n")
            equal(run(TENREC, "check", f"{folder}/a.yaml", cwd="/").stderr, "")
            equal(run(TENREC, "check", "a.yaml", cwd=folder).stderr, "")


def check_reads_stdin():
    got = run(TENREC, "check", "-", input=GOOD)
    equal((got.returncode, got.stderr), (0, ""))
    contains(got.stdout, "stdin: ok, 2 backends")
    got = run(TENREC, "check", "-", input="bakend: echo\n")
    equal((got.returncode, got.stdout), (1, ""))
    true(one_line(got.stderr).startswith("stdin:1:1: "), f"{got.stderr!r} has no place")


def check_says_where_a_key_belongs():
    refused("worker: {init_method: env://}\n", "F:1:10: ", "belongs beside 'worker'")
    refused("rpc_timeout: 3s\n", "F:1:1: ", "belongs under 'worker'")


def check_blames_the_environment_for_its_values():
    env = environment(TENREC_BACKENDS__TENSORPIPE__TRANSPORTS="[ibv]")
    status, _, errors = check("", env)
    equal(status, 1)
    contains(one_line(errors), "environment TENREC_BACKENDS__TENSORPIPE__TRANSPORTS: backend 'tensorpipe': transports: ")


def check_takes_one_file():
    for args in ([], ["a", "b"], ["--what", "a"]):
        got = run(TENREC, "check", *args)
        equal((got.returncode, got.stdout), (2, ""))
        contains(one_line(got.stderr), "tenrec help check")


main(globals(), "check_")
