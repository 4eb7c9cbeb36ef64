# SPDX-License-Identifier: Apache-2.0
"""dashboard_test.py - the dashboard of examples/operate asks for what workers serve, in words that Prometheus knows."""
import json
import os
import re
import subprocess

from cases import equal, main, true, until
from crew import LIMIT_S, LONG_MS, Crew, backend, free_port
from metrics_http import read_or_none, workers_of

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/operate")


def load():
    with open(f"{FOLDER}/grafana.json", encoding="utf-8") as f:
        return json.load(f)


def queries():
    """The title of each panel with each of its expressions, of which Grafana has replaced the variables."""
    for panel in load()["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "1m").replace("$worker", ".*").replace("$key", ".*")
            yield panel["title"], expression


def promtool(*words, text=None):
    got = subprocess.run(["promtool", "check", *words], input=text, capture_output=True, text=True, timeout=3 * LIMIT_S, check=False)
    equal(got.returncode, 0, got.stdout + got.stderr)


def dashboard_names_metrics_that_workers_serve():
    port = free_port()
    with Crew().run(2, env=backend(TENREC_OBSERVE__METRICS=f"127.0.0.1:{port}")) as crew:
        crew.all("init")
        crew[0].do(f"call worker1 add {LONG_MS} 1 2")
        crew[0].fails(f"call worker1 no_such_function {LONG_MS}")
        until(lambda: workers_of(read_or_none(port)) == ["worker0", "worker1"], "metrics of both")
        text = read_or_none(port)
        crew.leave()
    served = set(re.findall(r"^(\w+)[{ ]", text, re.MULTILINE))
    labels = set(re.findall(r'[{,](\w+)="', text))
    asked = set()
    for title, expression in queries():
        names = set(re.findall(r"\b(?:rpc|tenrec)_\w+(?=[{\[) -]|$)", expression)) - labels
        true(names, f"{title}: no metric in {expression}")
        asked |= names
        true(names <= served, f"{title}: {names - served} is not served")
        for label in re.findall(r"(\w+)(?:=~|!=|=)\"", expression):
            true(label in labels, f"{title}: no metric has the label '{label}'")
    for variable in load()["templating"]["list"]:
        for metric, label in re.findall(r"label_values\((\w+), (\w+)\)", variable["query"]):
            true(metric in served and label in labels, variable["query"])
    true({"tenrec_calls_made_total", "rpc_server_call_duration_seconds_bucket", "tenrec_backend_value",
          "tenrec_metrics_missing_processes", "tenrec_metrics_dropped_total"} <= asked, "a panel is missing")


def dashboard_has_expressions_that_prometheus_accepts():
    with Crew() as crew:
        path = f"{crew.folder.name}/rules.yml"
        rules = [{"record": f"panel:{i}", "expr": expression} for i, (_, expression) in enumerate(queries())]
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"groups": [{"name": "dashboard", "rules": rules}]}, f)  # JSON is YAML
        promtool("rules", path)
        promtool("config", f"{FOLDER}/prometheus.yml")


main(globals(), "dashboard_")
