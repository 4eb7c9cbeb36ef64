# SPDX-License-Identifier: Apache-2.0
"""dashboard.py - the queries of examples/operate/grafana.json, as Prometheus takes them."""
import json
import os

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/operate")


def load():
    with open(f"{FOLDER}/grafana.json", encoding="utf-8") as f:
        return json.load(f)


def queries(dashboard=None, rate="1m"):
    """The title of each panel with each of its expressions, of which Grafana has replaced the variables."""
    for panel in (dashboard or load())["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", rate).replace("$worker", ".*").replace("$key", ".*")
            yield panel["title"], expression
