# SPDX-License-Identifier: Apache-2.0
"""picture_test.py TENREC HELLO - script/trace-picture draws what a trace has, and says why it does not."""
import json
import os
import sys
import tempfile
from xml.etree import ElementTree

from cases import contains, equal, main, one_line, run, true

TENREC, HELLO = (os.path.abspath(path) for path in sys.argv[1:3])
DRAW = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../script/trace-picture")


def drawn(folder, *args):
    """The elements of the picture of such arguments, by their names, and its texts."""
    got = run(sys.executable, DRAW, f"{folder}/out.svg", *args)
    equal((got.returncode, got.stdout, got.stderr), (0, "", ""))
    root = ElementTree.parse(f"{folder}/out.svg").getroot()
    equal(root.get("width"), "800")
    found = [e for e in root.iter() if e.get("class")]
    return [e for e in found if e.get("class") == "bar"], [e for e in found if e.get("class") == "arrow"], \
        [e.text for e in found if e.tag.endswith("text")]


def event(ph, pid, ts, **more):
    return {"ph": ph, "pid": pid, "tid": pid, "ts": ts, "name": "rpc_sync#add(worker0 -> worker1)", "cat": "call", **more}


def write(folder, events, name="trace.json", clock_ns=0):
    with open(f"{folder}/{name}", "w", encoding="utf-8") as f:
        json.dump({"traceEvents": events, "otherData": {"clock_ns": clock_ns}}, f)
    return f"{folder}/{name}"


def picture_has_each_call_its_function_and_an_arrow():
    with tempfile.TemporaryDirectory() as folder:
        equal(run(TENREC, "run", "-n", 3, "--trace", f"{folder}/trace.json", "--", HELLO).returncode, 0)
        bars, arrows, texts = drawn(folder, f"{folder}/trace.json")
        equal((len(bars), len(arrows)), (6, 3))
        true({"worker0", "worker1", "worker2", "tenrec-pool", "hello", "add"} <= set(texts), texts)
        for bar in bars:
            x, width = float(bar.get("x")), float(bar.get("width"))
            true(100 < x and x + width <= 790, f"a bar from {x} with width {width}")


def picture_joins_traces_by_their_clocks():
    with tempfile.TemporaryDirectory() as folder:
        one = write(folder, [event("X", 1, 0, dur=1000)], "one.json", clock_ns=5_000_000)
        two = write(folder, [event("X", 2, 0, dur=1000)], "two.json", clock_ns=8_000_000)
        bars, _, _ = drawn(folder, one, two)
        x = sorted(float(bar.get("x")) for bar in bars)
        width = float(bars[0].get("width"))
        true(abs((x[1] - x[0]) / width - 3) < 0.01, f"bars of 1 ms, 3 ms apart, are {x[1] - x[0]} apart and {width} wide")


def picture_shows_a_part():
    with tempfile.TemporaryDirectory() as folder:
        trace = write(folder, [event("X", 1, 1000 * i, dur=500) for i in range(10)])
        bars, _, texts = drawn(folder, trace, "--from", 2, "--to", 4.2)
        equal(len(bars), 3)
        true("3 ms" in texts and "1 ms" not in texts, texts)


def picture_has_no_arrow_that_leads_back():
    with tempfile.TemporaryDirectory() as folder:
        both = [event("X", 1, 500, dur=100), event("X", 2, 100, dur=100, cat="serve", name="add"),
                event("s", 1, 500, id=7), event("f", 2, 100, id=7)]
        bars, arrows, _ = drawn(folder, write(folder, both))
        equal((len(bars), len(arrows)), (2, 0))


def picture_gives_bars_that_overlap_rows_of_their_own():
    with tempfile.TemporaryDirectory() as folder:
        events = [event("b", 1, 0, id=1), event("b", 1, 10, id=2), event("e", 1, 20, id=1), event("e", 1, 30, id=2),
                  event("b", 1, 40, id=3), event("e", 1, 50, id=3)]
        bars, _, texts = drawn(folder, write(folder, events))
        equal((len(bars), len({bar.get("y") for bar in bars}), texts.count("in flight")), (3, 2, 2))


def picture_escapes_names():
    with tempfile.TemporaryDirectory() as folder:
        bars, _, _ = drawn(folder, write(folder, [event("X", 1, 0, dur=9, name="<a&b>")]))
        contains(bars[0][0].text, "<a&b>")


def picture_is_readable_in_dark():
    with tempfile.TemporaryDirectory() as folder:
        drawn(folder, write(folder, [event("X", 1, 0, dur=9)]))
        with open(f"{folder}/out.svg", encoding="utf-8") as f:
            picture = f.read()
        contains(picture, "prefers-color-scheme: dark")


def picture_says_what_is_no_trace():
    with tempfile.TemporaryDirectory() as folder:
        for text in "", "[]", "{}", "x":
            with open(f"{folder}/bad.json", "w", encoding="utf-8") as f:
                f.write(text)
            got = run(sys.executable, DRAW, f"{folder}/out.svg", f"{folder}/bad.json")
            equal((got.returncode, os.path.exists(f"{folder}/out.svg")), (1, False))
            contains(one_line(got.stderr), f"trace-picture: '{folder}/bad.json' is no trace")
        got = run(sys.executable, DRAW, f"{folder}/out.svg", f"{folder}/none.json")
        contains(one_line(got.stderr), f"cannot read '{folder}/none.json'")
        got = run(sys.executable, DRAW, f"{folder}/out.svg", write(folder, []))
        contains(one_line(got.stderr), "the trace has no calls")


main(globals(), "picture_")
