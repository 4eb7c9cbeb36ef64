# SPDX-License-Identifier: Apache-2.0
"""deploy_test.py TENREC HELLO ELASTIC - the files of examples/deploy fit the commands, and start groups.

Their commands and variables run here, on one host: addresses become loopback, paths those of the build. What srun and mpirun do is
done by small scripts, which set the variables of Slurm and Open MPI.
"""
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile

import yaml

import cases

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../kubernetes"))
from api import Api  # pylint: disable=wrong-import-position
from ports import free_port

TENREC, HELLO, ELASTIC = map(os.path.abspath, sys.argv[1:])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEPLOY = os.path.join(ROOT, "examples/deploy")
COMMAND = re.compile(r"(?:^|[\s\"'`/])tenrec ((?:run|secret|ping|info|check|set) [^`#)\n]*)")
STORE = r"(?:172\.30\.77\.10|10\.1\.0\.1):29500"


def text(name):
    with open(os.path.join(DEPLOY, name), encoding="utf-8") as f:
        return f.read()


def documents(name):
    return list(yaml.safe_load_all(text(name)))


def only(items, **wanted):
    """The one item of a list with these values."""
    found = [i for i in items if all(i.get(k) == v for k, v in wanted.items())]
    cases.equal(len(found), 1, f"the number of entries with {wanted}")
    return found[0]


def secret(folder):
    path = os.path.join(folder, "job.key")
    cases.equal(cases.run(TENREC, "secret", "new", path).returncode, 0, "exit status of tenrec secret new")
    return path


def here(command, key, port):
    """A command of a file as it can run on this host."""
    for old, new in ((STORE, f"127.0.0.1:{port}"), (r"/run/secrets/job\.key|/etc/tenrec/%i\.key", key), (r"^(/usr/bin/)?tenrec$", TENREC),
                     (r"^/usr/lib/tenrec/examples/elastic$", ELASTIC), (r"^/usr/lib/tenrec/examples/hello$", HELLO)):
        command = [re.sub(old, new.replace("\\", ""), word) for word in command]
    return command


def all_end_well(processes):
    """Their outputs."""
    outputs = []
    for p in processes:
        try:
            outputs.append("".join(p.communicate(timeout=cases.LIMIT_S)))
        except subprocess.TimeoutExpired:
            for other in processes:
                other.kill()
            raise
    for p, out in zip(processes, outputs):
        cases.true(p.returncode == 0, f"{shlex.join(p.args)} ends with {p.returncode}:\n{out}")
    return outputs


def serve_and_join(serve, ready, join):
    """Two launchers of one group: the second starts when the shell command `ready` succeeds; then four workers answer."""
    with tempfile.TemporaryDirectory(prefix="tenrec-deploy-") as folder:
        key, port = secret(folder), free_port()
        env = launcher(folder)
        shell = ["sh", "-c", *here([ready], key, port)]
        started = [cases.start(*here([*serve, "1000000000"], key, port))]
        try:
            cases.until(lambda: cases.run(*shell, env=env).returncode == 0, ready)
            started.append(cases.start(*here([*join, "1000000000"], key, port)))
            for worker in range(4):
                ping = [TENREC, "ping", f"worker{worker}", "--store", f"tcp://127.0.0.1:{port}", "--secret-file", key]
                cases.until(lambda ping=ping: cases.run(*ping).returncode == 0, f"an answer of worker{worker}")
        finally:
            for p in reversed(started):
                p.terminate()
            said = [p.communicate(timeout=cases.LIMIT_S)[1] for p in started]
    for errors in said:
        cases.true("is taken by" not in errors and "restart" not in errors, errors)


def test_deploy_commands_have_options_that_exist():
    seen = set()
    for name in sorted(os.listdir(DEPLOY)):
        lines = text(name).replace("\\\n", " ")
        commands = [shlex.split(c.replace("'", "").replace('"', "")) for c in COMMAND.findall(lines)]
        if name == "compose.yaml":
            commands += [s["command"] for s in documents(name)[0]["services"].values()]
        for command in commands:
            usage = cases.run(TENREC, command[0], "--help").stdout
            words = command[1:command.index("--")] if "--" in command else command[1:]
            for option in [w.split("=")[0] for w in words if w.startswith("-")]:
                cases.true(re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", usage), f"{name}: tenrec {command[0]} has no option {option}")
            if command[0] == "secret":
                cases.contains(usage, "tenrec secret " + command[1])
            seen.add(command[0])
    cases.equal(seen, {"run", "secret", "ping"}, "the commands that were found")


def test_deploy_compose_has_two_hosts_and_one_secret():
    compose = documents("compose.yaml")[0]
    services = compose["services"]
    cases.equal(sorted(services), ["host0", "host1"], "services")
    cases.equal(compose["secrets"], {"job.key": {"file": "./job.key"}}, "secrets")
    for name, service in services.items():
        cases.equal(service["secrets"], ["job.key"], f"secrets of {name}")
        cases.contains(service["command"], "/run/secrets/job.key")
        cases.contains(service["user"], "TENREC_UID")
    address = services["host0"]["networks"]["group"]["ipv4_address"]
    cases.contains(services["host0"]["command"], f"{address}:29500")
    cases.contains(services["host1"]["command"], f"tcp://{address}:29500")
    build = services["host0"]["build"]
    cases.true(os.path.exists(os.path.join(DEPLOY, build["context"], build["dockerfile"])), "the container file is not where compose looks")


def test_deploy_compose_commands_start_one_group():
    services = documents("compose.yaml")[0]["services"]
    serve, join = (["tenrec", *map(str, services[name]["command"])] for name in ("host0", "host1"))
    kind, ready = services["host0"]["healthcheck"]["test"]
    cases.equal(kind, "CMD-SHELL")
    cases.equal(services["host1"]["depends_on"], {"host0": {"condition": "service_healthy"}})
    serve_and_join(serve, ready.replace("$$", "$"), join)


def kubernetes():
    service, job = documents("kubernetes.yaml")
    return service, job, job["spec"]["template"]["spec"]


def test_deploy_kubernetes_job_has_ranks_names_and_a_secret():
    service, job, pod = kubernetes()
    cases.equal((service["kind"], job["kind"], job["apiVersion"]), ("Service", "Job", "batch/v1"), "kinds")
    cases.equal(service["spec"]["clusterIP"], "None", "clusterIP of the headless service")
    cases.equal(service["spec"]["publishNotReadyAddresses"], True)
    cases.equal(service["spec"]["selector"], {"job-name": job["metadata"]["name"]}, "selector")
    cases.equal(pod["subdomain"], service["metadata"]["name"], "subdomain of the pods")
    cases.equal(job["spec"]["completionMode"], "Indexed")
    container = only(pod["containers"])
    env = {e["name"]: e for e in container["env"]}
    cases.contains(env["RANK"]["valueFrom"]["fieldRef"]["fieldPath"], "batch.kubernetes.io/job-completion-index")
    cases.equal([job["spec"]["completions"], job["spec"]["parallelism"]], [int(env["WORLD_SIZE"]["value"])] * 2, "completions and parallelism")
    cases.equal(env["MASTER_ADDR"]["value"], f"{job['metadata']['name']}-0.{pod['subdomain']}")
    cases.equal(only(service["spec"]["ports"])["port"], int(env["MASTER_PORT"]["value"]), "port of the service")
    mounts = {m["name"]: m for m in container["volumeMounts"]}
    key = env["TENREC_SECRET_FILE"]["value"]
    cases.equal(os.path.dirname(key), mounts["secret"]["mountPath"], "folder of the secret")
    cases.contains(text("kubernetes.yaml"), f"--from-file={os.path.basename(key)}")
    volume = only(pod["volumes"], name="secret")["secret"]
    cases.contains(text("kubernetes.yaml"), f"create secret generic {volume['secretName']} ")
    cases.equal(volume["defaultMode"] & (stat.S_IWGRP | stat.S_IRWXO), 0, "rights of others")
    cases.true(pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["fsGroup"], "the group cannot read the secret")
    cases.equal(mounts["shm"]["mountPath"], "/dev/shm")
    cases.equal(only(pod["volumes"], name="shm")["emptyDir"]["medium"], "Memory")


def test_deploy_kubernetes_variables_start_one_group():
    _, job, pod = kubernetes()
    container = only(pod["containers"])
    with tempfile.TemporaryDirectory(prefix="tenrec-deploy-") as folder:
        key, port = secret(folder), str(free_port())
        changed = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TENREC_SECRET_FILE": key}
        env = {e["name"]: changed.get(e["name"], e.get("value")) for e in container["env"]}
        outputs = all_end_well([cases.start(*here(container["command"], key, port), env=cases.environment(**{**env, "RANK": str(index)}))
                                for index in range(job["spec"]["completions"])])
    cases.equal(outputs, ["worker0 says 42\n"] * job["spec"]["completions"], "outputs")


def test_deploy_kubernetes_pods_of_a_stateful_set_have_ranks_by_their_names():
    service, pool = documents("kubernetes-statefulset.yaml")
    spec = pool["spec"]
    pod = spec["template"]["spec"]
    container = only(pod["containers"])
    env = {e["name"]: e["value"] for e in container["env"]}
    name = pool["metadata"]["name"]
    cases.equal((spec["serviceName"], spec["podManagementPolicy"], service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]),
                (service["metadata"]["name"], "Parallel", "None", True))
    cases.equal((service["spec"]["selector"], spec["selector"]["matchLabels"]), (spec["template"]["metadata"]["labels"],) * 2, "labels")
    first = f"{name}-0.{spec['serviceName']}:{only(service['spec']['ports'])['port']}"
    cases.contains(env["TENREC_INIT_METHOD"], f"tcp://{first}?")
    with tempfile.TemporaryDirectory(prefix="tenrec-deploy-") as folder:
        key, port = secret(folder), free_port()
        env["TENREC_SECRET_FILE"] = key
        env["TENREC_INIT_METHOD"] = env["TENREC_INIT_METHOD"].replace(first, f"127.0.0.1:{port}")
        started = [cases.start(*here(container["command"], key, port), env=cases.environment(**env, HOSTNAME=f"{name}-{index}"))
                   for index in range(spec["replicas"])]
        try:
            for index in range(spec["replicas"]):
                ping = [TENREC, "ping", f"worker{index}", "--store", f"tcp://127.0.0.1:{port}", "--secret-file", key]
                cases.until(lambda ping=ping: cases.run(*ping).returncode == 0, f"an answer of worker{index}")
        finally:
            for p in reversed(started):
                p.kill()
                p.communicate()


def need_kubernetes_store():
    if not any(os.path.exists(os.path.join(folder, "kubernetes.so")) for folder in os.environ["TENREC_PLUGIN_PATH"].split(":")):
        raise cases.Skipped("the store kubernetes is not built")


def test_deploy_kubernetes_store_variables_start_one_group():
    need_kubernetes_store()
    account, role, binding, job = documents("kubernetes-store.yaml")
    pod = job["spec"]["template"]["spec"]
    cases.equal((role["kind"], binding["roleRef"]["name"], binding["subjects"][0]["name"], pod["serviceAccountName"]),
                ("Role", role["metadata"]["name"], account["metadata"]["name"], account["metadata"]["name"]), "names")
    rights = {resource: set(rule["verbs"]) for rule in role["rules"] for resource in rule["resources"]}
    container = only(pod["containers"])
    with Api() as api, tempfile.TemporaryDirectory(prefix="tenrec-deploy-") as folder:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "uid": "4-5-6"}
        changed = {"TENREC_SECRET_FILE": secret(folder)}
        env = {e["name"]: changed.get(e["name"], e.get("value")) for e in container["env"]}
        for index in range(job["spec"]["completions"]):
            api.pods[f"pod-{index}"] = {"metadata": {"name": f"pod-{index}", "ownerReferences": [owner]}}
        outputs = all_end_well([cases.start(*here(container["command"], "", ""), env=cases.environment(
            **{**env, "RANK": str(index), "HOSTNAME": f"pod-{index}", "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(api.port),
               "TENREC_STORES__KUBERNETES__TLS": "false"})) for index in range(job["spec"]["completions"])])
        cases.equal(api.objects["default", "tenrec-" + job["metadata"]["name"]]["metadata"]["ownerReferences"], [owner])
        cases.true(all(used <= rights[resource] for resource, used in api.rights.items()), f"{api.rights} were needed, the role has {rights}")
    cases.equal(outputs, ["worker0 says 42\n"] * job["spec"]["completions"], "outputs")


KUBECTL = """#!/bin/bash
case "$*" in
proxy*) echo "Starting to serve on 127.0.0.1:$PORT"; exec sleep 100 ;;
"create token"*) echo token ;;
*certificate-authority-data*) base64 "$CA" ;;
*cluster.server*) echo "https://127.0.0.1:$TLS_PORT" ;;
esac
"""


def test_deploy_kubernetes_test_runs_against_a_stub():
    need_kubernetes_store()
    if not shutil.which("openssl"):
        raise cases.Skipped("openssl is not installed")
    from store_certificates import CA, path  # pylint: disable=import-outside-toplevel
    with Api() as api, Api(certificate=(path("server.pem"), path("server.key"))) as tls, tempfile.TemporaryDirectory(prefix="tenrec-deploy-") as folder:
        tls.tokens = {"token"}
        kubectl = os.path.join(folder, "kubectl")
        with open(kubectl, "w", encoding="ascii") as f:
            f.write(KUBECTL)
        os.chmod(kubectl, 0o755)
        build = os.path.dirname(os.path.dirname(TENREC))
        got = cases.run(os.path.join(ROOT, "script/ci/kubernetes-test"), build, "processes_see_what_others_have_done",
                        env=cases.environment(KUBECTL=kubectl, PORT=str(api.port), TLS_PORT=str(tls.port), CA=CA))
    cases.equal(got.returncode, 0, got.stdout + got.stderr)
    cases.contains(got.stdout, "kubernetes-test: all passed")
    cases.true(len(tls.asked) > 10, "the group asked nothing")


def test_deploy_scripts_pass_shellcheck():
    done = cases.run("shellcheck", *(os.path.join(DEPLOY, name) for name in ("slurm.sh", "mpi.sh")),
                     os.path.join(ROOT, "script/ci/kubernetes-test"))
    cases.equal((done.returncode, done.stdout), (0, ""))


# The tasks of a step on one node, as srun starts them; other options than those known here are mistakes.
SRUN = """#!/bin/bash
n=$SLURM_NTASKS
while :; do
    case $1 in
    --ntasks=*) n=${1#*=} ;;
    --ntasks-per-node=* | --kill-on-bad-exit=1) ;;
    --export=ALL,*) export "${1#*,}" ;;
    -*) echo "srun: unknown option $1" >&2 && exit 1 ;;
    *) break ;;
    esac
    shift
done
export SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=$n SLURM_STEP_NUM_NODES=1 SLURM_STEP_NODELIST=n1 SLURM_STEP_TASKS_PER_NODE=$n SLURM_NODEID=0
status=0 tasks=()
for ((i = 0; i < n; i++)); do
    SLURM_PROCID=$i SLURM_LOCALID=$i "$@" &
    tasks+=($!)
done
for task in "${tasks[@]}"; do wait "$task" || status=$?; done
exit $status
"""
SBCAST = """#!/bin/bash
[ "$1" = --preserve ] && [ $# -eq 3 ] && exec cp -p "$2" "$3"
exit 1
"""
MPIRUN = """#!/bin/bash
while :; do
    case $1 in
    --hostfile | --map-by) shift ;;
    -n) n=$2 && shift ;;
    -x) [ -n "${!2}" ] && shift ;;
    -*) echo "mpirun: unknown option $1" >&2 && exit 1 ;;
    *) break ;;
    esac
    shift
done
status=0 tasks=()
for ((i = 0; i < n; i++)); do
    OMPI_COMM_WORLD_RANK=$i OMPI_COMM_WORLD_SIZE=$n OMPI_COMM_WORLD_LOCAL_RANK=$i OMPI_COMM_WORLD_LOCAL_SIZE=$n "$@" &
    tasks+=($!)
done
for task in "${tasks[@]}"; do wait "$task" || status=$?; done
exit $status
"""


def launcher(folder, **more):
    """An environment with the scripts above in PATH."""
    binary = os.path.join(folder, "bin")
    os.makedirs(binary, exist_ok=True)
    for name, script in (("srun", SRUN), ("sbcast", SBCAST), ("mpirun", MPIRUN)):
        with open(os.path.join(binary, name), "w", encoding="utf-8") as f:
            f.write(script)
        os.chmod(os.path.join(binary, name), 0o755)
    if not os.path.lexists(os.path.join(binary, "tenrec")):
        os.symlink(TENREC, os.path.join(binary, "tenrec"))
    return cases.environment(PATH=f"{binary}:{os.environ['PATH']}", TMPDIR=folder, **more)


def test_deploy_slurm_script_starts_one_group_and_removes_its_secret():
    with tempfile.TemporaryDirectory(prefix="tenrec-deploy-") as folder:
        port = next(p for p in iter(free_port, None) if p < 30000)
        job = str((port - 10000) * pow(61, -1, 20000) % 20000) # of which group/meeting/slurm.c derives the port
        env = launcher(folder, SLURM_JOB_ID=job, SLURM_JOB_NUM_NODES="1", SLURM_NTASKS="2")
        done = cases.run(os.path.join(DEPLOY, "slurm.sh"), HELLO, env=env, cwd=folder)
        cases.equal((done.returncode, done.stdout), (0, "worker0 says 42\n" * 2), done.stderr)
        cases.equal(os.listdir(folder), ["bin"], "what is left")


def test_deploy_slurm_script_fails_when_a_task_does():
    with tempfile.TemporaryDirectory(prefix="tenrec-deploy-") as folder:
        env = launcher(folder, SLURM_JOB_ID="7", SLURM_JOB_NUM_NODES="1", SLURM_NTASKS="2")
        done = cases.run(os.path.join(DEPLOY, "slurm.sh"), "sh", "-c", "exit 3", env=env, cwd=folder)
        cases.equal(done.returncode, 3, "exit status")
        cases.equal(os.listdir(folder), ["bin"], "what is left")


def test_deploy_mpi_script_starts_one_group():
    with tempfile.TemporaryDirectory(prefix="tenrec-deploy-") as folder:
        hosts = os.path.join(folder, "hosts")
        with open(hosts, "w", encoding="utf-8") as f:
            f.write("# the first one serves\n\n127.0.0.1 slots=2\nnowhere.invalid slots=2\n")
        env = launcher(folder, TENREC_SECRET_FILE=secret(folder), MASTER_PORT=str(free_port()))
        done = cases.run(os.path.join(DEPLOY, "mpi.sh"), hosts, "2", HELLO, env=env)
    cases.equal((done.returncode, done.stdout), (0, "worker0 says 42\n" * 2), done.stderr)


def test_deploy_mpi_script_demands_a_secret():
    with tempfile.TemporaryDirectory(prefix="tenrec-deploy-") as folder:
        env = launcher(folder)
        env.pop("TENREC_SECRET_FILE", None)
        done = cases.run(os.path.join(DEPLOY, "mpi.sh"), "hosts", "2", HELLO, env=env)
    cases.true(done.returncode, "it goes on without")
    cases.contains(done.stderr, "name the file of the group secret")


def test_deploy_unit_is_one_that_systemd_accepts():
    with tempfile.TemporaryDirectory(prefix="tenrec-deploy-") as folder:
        unit = os.path.join(folder, "tenrec@search.service")
        with open(unit, "w", encoding="utf-8") as f:
            f.write(text("tenrec@.service").replace("/usr/bin/tenrec", TENREC).replace("man:tenrec-run(1)", "https://tenrec.invalid"))
        done = cases.run("systemd-analyze", "verify", "--man=no", unit, env=cases.environment(SYSTEMD_LOG_LEVEL="warning"))
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "tenrec" in line]
    cases.equal((done.returncode, ours), (0, []), "what systemd-analyze verify says")


def test_deploy_unit_starts_one_group():
    unit = text("tenrec@.service")
    settings = dict(re.findall(r"^# +(WORKERS|PROGRAM|AFTER)=\"?([^\"\n]+)", unit, re.MULTILINE))
    places = re.search(r"PLACE=(\S+)\s+PLACE=(\S+)", unit)
    serve, join = ([re.sub(r"\$\{(\w+)\}", lambda m, place=place: {**settings, "PLACE": place}[m[1]], word)
                    for word in shlex.split(re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)[1])] for place in places.groups())
    before = shlex.split(re.search(r"^ExecStartPre=(.*)$", unit, re.MULTILINE)[1])
    cases.equal(before[:2], ["/bin/sh", "-c"])
    ready = before[2].replace("$$", "$").replace("/usr/bin/tenrec", "tenrec")
    serve_and_join(serve, f"AFTER='{settings['AFTER']}'; PLACE={places[2]}; {ready}", join)


def test_deploy_container_file_builds_by_what_the_tree_needs():
    lines = text("Containerfile").replace("\\\n", " ").splitlines()
    stages = [line.split() for line in lines if line.startswith("FROM")]
    cases.equal([s[1] for s in stages], ["docker.io/library/debian:bookworm-slim"] * 2, "the images of the stages")
    installed = [re.search(r"--no-install-recommends\s+(.*?)(?:&&|$)", line)[1].split() for line in lines if "apt-get install" in line]
    with open(os.path.join(ROOT, "script/bootstrap"), encoding="utf-8") as f:
        wanted = set(re.search(r"^build=\((.*?)\)", f.read(), re.MULTILINE | re.DOTALL)[1].split())
    # Of tests, and of a store that the image leaves out.
    cases.equal(set(installed[0]), wanted - {"libcmocka-dev", "libhiredis-dev"}, "packages of the build")
    runs = {"libuv1-dev": "libuv1", "libyaml-dev": "libyaml-0-2", "libjansson-dev": "libjansson4", "libssl-dev": "libssl3", "libxxhash-dev": "libxxhash0",
            "libmicrohttpd-dev": "libmicrohttpd12", "libcurl4-openssl-dev": "libcurl4"}
    cases.equal(set(installed[1]), {runs[p] for p in installed[0] if p in runs}, "packages of the image")
    with open(os.path.join(ROOT, "meson_options.txt"), encoding="utf-8") as f:
        options = set(re.findall(r"option\('(\w+)'", f.read())) | {"buildtype", "prefix"}
    used = set(re.findall(r"-D(\w+)=", text("Containerfile")))
    cases.true(used and used <= options, f"options that meson.build does not have: {used - options}")
    copied = [line.split() for line in lines if line.startswith("COPY")]
    cases.equal(copied, [["COPY", ".", "/src"], ["COPY", "--from=build", "/image", "/"]], "what is copied")
    for name in re.findall(r"/build/examples/(\w+)", text("Containerfile")):
        cases.true(os.path.exists(os.path.join(ROOT, "examples", name + ".c")), f"there is no example {name}")


def test_deploy_page_names_each_file():
    with open(os.path.join(ROOT, "docs/hosts.md"), encoding="utf-8") as f:
        page = f.read()
    for name in os.listdir(DEPLOY):
        cases.contains(page, f"../examples/deploy/{name}")


for tool in ("shellcheck", "systemd-analyze"):
    if not shutil.which(tool):
        sys.exit(f"deploy_test.py: {tool} is missing: script/bootstrap --tests installs it")
cases.main(globals(), "test_deploy_", "examples_deploy")
