# SPDX-License-Identifier: Apache-2.0
"""examples_test.py TENREC BIGRAM HELLO SERVICE_TEST PARAMETER_SERVER ELASTIC - the examples do what they say, with
real processes, on each shipped backend.
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TENREC, BIGRAM, HELLO, SERVICE_TEST, PARAMETER_SERVER, ELASTIC = sys.argv[1:]
LAST = re.compile(r"\[0\] bigram: perplexity (\S+) \(optimum (\S+)\), (\d+) workers, backend (\S+), "
                  r"(\d+) steps, \S+ s$")
results = []


def run(workers, *program, backend="tensorpipe"):
    env = {**os.environ, "TENREC_BACKEND": backend}
    done = subprocess.run([TENREC, "run", "-n", str(workers), "--config", f"{ROOT}/config/default.yaml", "--",
                           *program], env=env, capture_output=True, text=True, errors="replace",
                          timeout=100, check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr


def case(name, problem):
    results.append(not problem)
    print(f"{'not ok' if problem else 'ok'} {len(results)} - {name}")
    for line in str(problem or "").splitlines():
        print(f"# {line}")
    sys.stdout.flush()


def bigram(workers, backend, *args):
    """What is wrong with such a run, and its lines."""
    code, lines, errors = run(workers, BIGRAM, *args, backend=backend)
    last = LAST.match(lines[-1]) if lines else None
    if code or not last:
        return f"exit status {code}, last line {lines[-1:]}\n{errors}", lines
    p, q = float(last[1]), float(last[2])
    if not q <= p <= q * 1.01:
        return f"{p} is not within 1 % of {q}", lines
    if (last[3], last[4]) != (str(workers), backend):
        return f"last line says {last[3]} workers on {last[4]}", lines
    return None, lines


def losses(lines):
    return [float(m[1]) for m in map(re.compile(r"loss (\d+\.\d+)").search, lines) if m]


code, lines, errors = run(2, HELLO)
case("examples_hello_adds", None if (code, sorted(lines)) == (0, ["[0] worker0 says 42", "[1] worker0 says 42"]) else f"{code} {lines}\n{errors}")

done = subprocess.run([TENREC, "run", "--elastic", "3:3", "--config", f"{ROOT}/config/default.yaml", "--", ELASTIC, "1000"],
                      capture_output=True, text=True, timeout=100, check=False)
told = [line for line in done.stdout.splitlines() if line.endswith(" calls")]
case("examples_elastic_workers_join_call_and_leave",
     None if done.returncode == 0 and len(told) == 3 else f"{done.returncode} {done.stdout}\n{done.stderr}")

done = subprocess.run(["sh", "-c", f"exec {HELLO} <&- >&- 2>&-"], timeout=100, check=False)
case("examples_hello_needs_no_standard_files", None if done.returncode == 0 else f"{done.returncode}")

def without_descriptors():
    """Each count of descriptors that is too small gives an error, and no crash."""
    for n in range(4, 12):
        got = subprocess.run(["sh", "-c", f"ulimit -n {n} && exec {HELLO}"], timeout=100, check=False,
                             capture_output=True, text=True)
        if got.returncode != 1 or not got.stderr.endswith(("Too many open files\n", "No file descriptors available\n")):
            yield f"{n} descriptors: {got.returncode} {got.stdout}{got.stderr}"


case("examples_hello_says_why_when_descriptors_are_few", "\n".join(without_descriptors()))

done = subprocess.run([SERVICE_TEST], capture_output=True, text=True, timeout=100, check=False)
case("examples_service_test_passes", None if (done.returncode, done.stdout) == (
    0, "service_test: the total was 110, and the server was missed when it died\n")
    else f"{done.returncode} {done.stdout}\n{done.stderr}")

with open(f"{ROOT}/examples/service_test.c", encoding="utf-8") as f:
    length = sum("SPDX" not in line for line in f)
case("examples_service_test_is_under_80_lines", f"{length} lines" if length >= 80 else None)

problem, lines = bigram(4, "tensorpipe")
case("examples_bigram_comes_within_a_percent_of_counting", problem)
falling = losses(lines)
case("examples_bigram_prints_a_loss_that_falls_from_that_of_zero_logits",
     None if len(falling) > 5 and falling[0] == 4.852 and falling == sorted(falling, reverse=True)
     else falling)

problem, lines = bigram(4, "faulty")
case("examples_bigram_comes_as_close_when_sends_are_made_to_fail", problem)
# 3 trainers, 200 steps, a pull and a push in each, of which 3 sends fail.
case("examples_bigram_counts_the_faults",
     None if "[0] bigram: 3600 faults injected, each send was tried again" in lines else lines)



def parameter_server(config, *args):
    done = subprocess.run([TENREC, "run", "-n", "4", "--keep-going", "--config", f"{ROOT}/config/{config}", "--",
                           PARAMETER_SERVER, *args], capture_output=True, text=True, timeout=100, check=False)
    return done.returncode, done.stdout, done.stderr


code, lines, errors = parameter_server("faulty_rref.yaml", "--updates", "1200")
case("examples_parameter_server_learns_while_control_messages_fail",
     None if code == 0 and re.search(r"[1-9]\d* control messages were made to fail", lines)
     and "0 lost, 0 references left" in lines else f"{code} {lines}\n{errors}")

for config in "faulty_rref.yaml", "default.yaml":
    code, lines, errors = parameter_server(config, "--updates", "1200", "--kill", "2")
    case(f"examples_parameter_server_goes_on_when_a_trainer_is_killed_on_{config.split('.')[0]}",
         None if code == 137 and "worker2 is lost after" in lines and "1 lost, 0 references left" in lines
         and re.search(r"samples seen: \d+ - \d+$", lines, re.MULTILINE)
         else f"{code} {lines}\n{errors}")

with tempfile.NamedTemporaryFile(suffix=".txt") as f:
    f.write("ein Text: äöü, 文字\n".encode() * 20 + bytes(range(256)))
    f.flush()
    problem, _ = bigram(2, "tensorpipe", f.name)
    case("examples_bigram_takes_any_bytes", problem)

code, lines, errors = run(2, BIGRAM, "--steps", "2")
case("examples_bigram_fails_when_the_loss_does_not_come_close",
     None if code == 1 and "not within 1 %" in errors else f"{code} {lines}\n{errors}")
code, lines, errors = run(1, BIGRAM)
case("examples_bigram_refuses_to_run_alone",
     None if code == 2 and "expected 2 to 256" in errors else f"{code} {lines}\n{errors}")
code, lines, errors = run(2, BIGRAM, "/does/not/exist")
case("examples_bigram_names_a_file_that_is_not_there",
     None if code == 1 and "'/does/not/exist'" in errors else f"{code} {lines}\n{errors}")
print(f"1..{len(results)}")
sys.exit(0 if all(results) else 1)
