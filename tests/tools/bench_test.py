# SPDX-License-Identifier: Apache-2.0
"""bench_test.py COMPARE BUILD PROGRAM... - the benchmark programs do their work, and bench/compare
judges rightly. How fast it is, no test says."""
import importlib
import json
import os
import re
import sys

from cases import contains, environment, equal, has_ucx, main, run, tcp_transport, true

COMPARE, BUILD = sys.argv[1:3]
PROGRAMS = sys.argv[3:]
SMALL, MIDDLE = 64, 65536

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(COMPARE))
machine, programs, table, verdict, works = map(importlib.import_module, ("machine", "programs", "table", "verdict", "works"))


def program(name):
    return next(path for path in PROGRAMS if os.path.basename(path) == name)


def figures(*command):
    got = run(*command, env=environment(BENCH_QUICK="1", BENCH_CPUS="none"))
    true(got.returncode == 0, f"{command[0]} {' '.join(command[1:])}: {got.stderr}")
    return [json.loads(line) for line in got.stdout.splitlines()]


def ways(path):
    """(mode, progress, via) of all that a program says it can do."""
    got = run(path)
    equal(got.returncode, 2, "exit status without arguments")
    for via, modes, waits in re.findall(r"^ +(\S+): ([a-z ]+): ([a-z ]+)$", got.stderr, re.MULTILINE):
        if via == "ucx" and not has_ucx():
            continue
        for mode in modes.split():
            for progress in waits.split():
                yield mode, progress, via


def expect_figures(got, mode, progress, via, size):
    equal((got["mode"], got["progress"], got["via"]), (mode, progress, via))
    true(got["calls"] > 0 and got["cpu_us_per_call"] >= 0, f"figures are {got}")
    true(got["calls_per_s" if mode == "rate" else "p50_us"] > 0, f"figures are {got}")
    if mode not in ("latency", "rate"):
        equal(got["size_bytes"], size)
        true(got["gb_per_s"] > 0, f"figures are {got}")


def expect_every_way(path):
    known = list(ways(path))
    true(known, f"{path} can do nothing")
    for mode, progress, via in known:
        sizes = [SMALL] if mode in ("latency", "rate") else [MIDDLE]
        rows = figures(path, mode, progress, via, ",".join(map(str, sizes)))
        equal(len(rows), len(sizes), "lines printed")
        for row, size in zip(rows, sizes):
            expect_figures(row, mode, progress, via, size)


def make_case(path):
    def case():
        expect_every_way(path)
    case.__name__ = f"bench_{os.path.basename(path)}_does_all_that_it_says"
    return case


for each in map(make_case, PROGRAMS):
    globals()[each.__name__] = each


def bench_programs_print_a_line_for_each_size():
    rows = figures(program("raw"), "bandwidth", "busy", "tcp", "64,4096,65536")
    equal([row["size_bytes"] for row in rows], [64, 4096, 65536])


def bench_counts_the_system_calls_of_a_message():
    got = figures(program("tenrec_bench"), "latency", "sleep", "uv")[0]
    true(got["sends_per_message"] > 0 and got["receives_per_message"] > 0, f"figures are {got}")
    equal(got["transport"], tcp_transport())


def bench_init_idle_and_after_print_their_figures():
    tenrec = program("tenrec_bench")
    true(figures(tenrec, "init", "uv")[0]["init_s"] > 0, "init took no time")
    for mode in ("idle", "after"):
        got = figures(tenrec, mode, "uv")[0]
        true(got["threads"] >= 1 and got["rss_kib"] > 0 and got["cpu_percent"] >= 0, f"figures are {got}")


def bench_simulate_prints_the_figures_of_a_group():
    got = run(sys.executable, os.path.join(os.path.dirname(COMPARE), "simulate"), "40", "--json", "--build", BUILD, "--processes", "2")
    equal(got.returncode, 0, f"exit status, with {got.stderr!r}")
    row = json.loads(got.stdout)
    equal(row["workers"], 40)
    true(row["requests"] < 60 * 40, f"requests to the store grow with the square of the workers: {row}")
    true(all(row[key] > 0 for key in ("init_s", "barrier_s", "shutdown_s", "requests", "rss_kib_per_worker")), f"row is {row}")


def bench_simulate_prints_the_figures_of_a_dynamic_group():
    got = run(sys.executable, os.path.join(os.path.dirname(COMPARE), "simulate"), "12", "--elastic", "--json", "--build", BUILD, "--processes", "2")
    equal(got.returncode, 0, f"exit status, with {got.stderr!r}")
    row = json.loads(got.stdout)
    true(all(row[key] > 0 for key in ("init_s", "joins_s", "leaves_s", "dies_s", "barrier_s", "shutdown_s", "requests")), f"row is {row}")


def bench_programs_refuse_unknown_arguments():
    for path in PROGRAMS:
        for args in (["latency"], ["speed", "busy", "tcp"], ["latency", "fast", "tcp"], ["latency", "sleep", "air"],
                     ["latency", "sleep", "tcp", "1"], ["latency", "sleep", "tcp", "x"]):
            equal(run(path, *args).returncode, 2, f"exit status of {path} {args}")
    got = run(program("raw"), "latency", "sleep", "tcp", env=environment(BENCH_CPUS="x"))
    equal(got.returncode, 1, "exit status")
    contains(got.stderr, "BENCH_CPUS")


def compare_prints(*args):
    got = run(sys.executable, COMPARE, "--no-build", "--build", BUILD, "--quick", "--rounds", "1", "--cpus", "none",
              *args)
    equal(got.returncode, 0, f"exit status, with {got.stderr!r}")
    return got.stdout


def bench_compare_prints_json():
    got = json.loads(compare_prints("--json", "--only", "64 in flight, TCP, asleep"))
    row = got["rows"][0]
    equal((row["work"], row["peer"], row["figure"]), ("64 in flight, TCP, asleep", "raw batched", "calls_per_s"))
    true(row["ratio"] > 0 and len(row["ratios"]) == 1, f"row is {row}")
    equal(set(got["absent"]) - set(programs.PACKAGES), set())
    true({"busy_before", "load_before", "steal", "foreign", "raw_spread"} <= set(got["machine"][0]), f"machine is {got['machine']}")


def bench_compare_prints_a_table_of_its_json():
    name = "bench_test.part.json"
    with open(name, "w", encoding="utf-8") as f:
        f.write(compare_prints("--json", "--only", "64 in flight, TCP, asleep"))
    got = compare_prints("--table", name, name)
    os.unlink(name)
    equal(len(re.findall("^64 in flight, TCP, asleep .*raw batched ", got, re.MULTILINE)), 2, "rows")


def bench_compare_names_peers_that_are_not_there():
    nothing = programs.Programs("/nonexistent", None)
    equal(nothing.absent(), list(programs.PACKAGES))
    contains(programs.absent_text("UCX"), "libucx-dev")
    for work in works.all_works(nothing):
        for pair in work.pairs:
            if pair.command is None:
                equal(pair.verdict(work.at_least), "not measured", f"{work.name}, {pair.label}")
    rows = [row for work in works.all_works(nothing) for row in work.rows()]
    contains(table.as_text(rows), "not measured")


def bench_compare_runs_the_judged_peer_beside_tenrec():
    here = programs.Programs(BUILD, None)
    for work in works.all_works(here):
        for number in (0, 1):
            order = work.commands(number)
            judged = [pair for pair in work.pairs if pair.reach is not None and pair.command not in (None, work.command)]
            if judged:
                true(abs(order.index(tuple(judged[0].command)) - order.index(tuple(work.command))) == 1,
                     f"{work.name}: {order}")


def bench_compare_judges_by_the_median_of_enough_pairs():
    for ratios, reach, at_least, wanted in (([1.1] * 9, 1.15, False, "met"),
                                            ([1.2] * 9, 1.15, False, "missed"),
                                            ([9, 9, 9, 9] + [1] * 5, 1.15, False, "met"),
                                            ([0.5] * 9, 0.4, True, "met"),
                                            ([0.3] * 9, 0.4, True, "missed"),
                                            ([1.0] * 8, 1.15, False, "too few pairs (8)"),
                                            ([], 1.15, False, "not measured"),
                                            ([], None, False, "not measured"),
                                            ([2.0] * 9, None, False, "")):
        pair = verdict.Pair("x", [], reach=reach)
        pair.ratios = ratios
        equal(pair.verdict(at_least), wanted, f"verdict of {ratios}")


def bench_compare_takes_ratios_of_the_same_round_only():
    pair = verdict.Pair("x", ["peer"], reach=1)
    work = verdict.Work("w", ["tenrec"], "p50_us", [pair])
    work.take({("tenrec",): {"p50_us": 2}, ("peer",): None})
    work.take({("tenrec",): None, ("peer",): {"p50_us": 1}})
    work.take({("tenrec",): {"p50_us": 3}, ("peer",): {"p50_us": 2}})
    equal(pair.ratios, [1.5])


def bench_compare_judges_limits():
    limit = verdict.Limit("x", ["tenrec"], {"threads": 4})
    equal(limit.verdict(), "not measured")
    for found, wanted in (({"threads": 4}, "met"), ({"threads": 5}, "missed"), ({}, "not measured")):
        limit.found = found
        equal(limit.verdict(), wanted, f"verdict of {found}")
    limit = verdict.Limit("x", ["tenrec"], {"sends_per_message": 1}, exact=True)
    limit.found = {"sends_per_message": 0.5}
    equal(limit.verdict(), "missed")


def bench_compare_says_when_the_machine_was_busy():
    quiet = {"busy_before": 0.1, "foreign": 0.01, "steal": 0, "raw_spread": 1.1}
    equal(machine.complaints(quiet), [])
    for key, value, part in (("busy_before", 1.5, "before"), ("foreign", 0.5, "others"), ("steal", 0.2, "host"),
                             ("raw_spread", 3, "raw figures")):
        contains(machine.complaints(dict(quiet, **{key: value}))[0], part)


def bench_compare_prints_markdown_of_limits_and_of_all_peers():
    pair, other = verdict.Pair("raw", ["peer"], reach=2), verdict.Pair("UCX", None)
    work = verdict.Work("call", ["tenrec"], "p50_us", [pair, other])
    work.take({("tenrec",): {"p50_us": 3}, ("peer",): {"p50_us": 2}})
    text = table.as_markdown(work.rows())
    contains(text, "| call | 3.00 us | raw 2.00 us | 1.50x (1.50..1.50) | <= 2x | too few pairs (1) |")
    contains(text, "| call | 3.00 us | raw 2.00 us (1.50x), UCX not measured |")


def bench_compare_says_what_a_layer_costs():
    pair, absent = verdict.Without("no layer", ["plain"], passes=4), verdict.Without("none", None, passes=4)
    work = verdict.Work("call", ["layered"], "p50_us", [pair, absent])
    for mine, plain in ((2.2, 2), (2.6, 2), (9, 1)):
        work.take({("layered",): {"p50_us": mine}, ("plain",): {"p50_us": plain}})
    rows = work.rows()
    contains(table.as_text(rows), "1.30x  1.10..9.00         150 ns per layer and message")
    contains(table.as_text(rows), "not measured")
    contains(table.as_markdown(rows), "no layer 2.00 us (1.30x; 150 ns per layer and message), none not measured")


main(globals(), "bench_")
