# SPDX-License-Identifier: Apache-2.0
"""metrics_http.py - reads the metrics of workers as Prometheus does."""
import re
import urllib.request


def read(port, path="/metrics"):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
        return answer.read().decode()


def read_or_none(port):
    try:
        return read(port)
    except OSError:
        return None


def workers_of(text):
    return sorted(re.findall(r'^tenrec_group_members\{.*tenrec_worker_name="(\w+)"\}', text or "", re.MULTILINE))
