"""bench_test.py RAW TENREC_BENCH COMPARE - the benchmark programs do their work, and bench/compare
judges rightly. How fast it is, no test says."""
import importlib.machinery
import importlib.util
import json
import os
import sys

from cases import contains, environment, equal, main, run, true

RAW, TENREC, COMPARE = (os.path.abspath(path) for path in sys.argv[1:4])


def compare_module():
    loader = importlib.machinery.SourceFileLoader("compare", COMPARE)
    sys.dont_write_bytecode = True
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", loader))
    loader.exec_module(module)
    return module


def figures(*command):
    got = run(*command, env=environment(BENCH_QUICK="1", BENCH_CPUS="none"))
    equal((got.returncode, got.stderr), (0, ""))
    return json.loads(got.stdout)


def bench_every_mode_prints_its_figures():
    for program in (RAW, TENREC):
        for mode, key in (("latency", "p50_us"), ("rate", "calls_per_s"), ("bandwidth", "gib_per_s")):
            got = figures(program, mode, "sleep")
            equal((got["mode"], got["progress"]), (mode, "sleep"))
            true(got[key] > 0 and got["cpu_us_per_call"] > 0, f"figures are {got}")


def bench_counts_the_system_calls_of_a_message():
    got = figures(TENREC, "latency", "sleep")
    true(got["sends_per_message"] > 0 and got["receives_per_message"] > 0, f"figures are {got}")


def bench_init_and_idle_print_their_figures():
    true(figures(TENREC, "init")["init_s"] > 0, "init took no time")
    got = figures(TENREC, "idle")
    true(got["threads"] >= 1 and got["rss_kib"] > 0 and got["cpu_percent"] >= 0, f"figures are {got}")


def bench_programs_refuse_what_they_do_not_know():
    for program in (RAW, TENREC):
        for args in ([], ["latency"], ["speed", "busy"], ["latency", "fast"]):
            equal(run(program, *args).returncode, 2, f"exit status of {args}")
    got = run(RAW, "latency", "sleep", env=environment(BENCH_CPUS="x"))
    equal(got.returncode, 1, "exit status")
    contains(got.stderr, "BENCH_CPUS")


def bench_compare_judges_by_the_median_of_enough_pairs():
    compare = compare_module()
    for ratios, reach, at_least, verdict in (([1.1] * 9, 1.15, False, "met"),
                                             ([1.2] * 9, 1.15, False, "missed"),
                                             ([9, 9, 9, 9] + [1] * 5, 1.15, False, "met"),
                                             ([0.5] * 9, 0.4, True, "met"),
                                             ([0.3] * 9, 0.4, True, "missed"),
                                             ([1.0] * 8, 1.15, False, "too few pairs (8)"),
                                             ([], 1.15, False, "not measured"),
                                             ([2.0] * 9, None, False, "")):
        row = compare.Row("x", [], [], "p50_us", "us", reach, at_least)
        row.ratios = ratios
        equal(row.verdict(), verdict, f"verdict of {ratios}")


def bench_compare_never_calls_a_missing_peer_met():
    compare = compare_module()
    row = compare.Row("x", ["true"], None, "p50_us", "us", 1.0)
    equal((row.verdict(), compare.as_object(row)["verdict"]), ("not measured", "not measured"))
    limit = compare.Limit("x", ["true"], {"threads": 4}, 1)
    equal(limit.verdict(), "not measured")
    limit.our_rows = [{"threads": 4}]
    equal(limit.verdict(), "met")
    limit.our_rows = [{"threads": 5}]
    equal(limit.verdict(), "missed")


main(globals(), "bench_")
