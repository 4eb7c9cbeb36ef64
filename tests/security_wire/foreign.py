# SPDX-License-Identifier: Apache-2.0
"""foreign.py - peers of TLS that are not Tenrec's: the command openssl, with keys and certificates of
a test's own, and a group of workers in a mode for them to meet.

    with group("tls") as crew, Client(port_of(crew, 0), *PSK) as client: ...
"""
import array
import fcntl
import json
import os
import signal
import subprocess
import tempfile
import termios
import time

from cases import Failed, contains, environment, equal, run, true, until
from crew import LIMIT_S, LONG_MS, TENREC, Crew, backend
import proof

SECRET = bytes(range(0x30, 0x50))
KEY = proof.derive(SECRET, b"tenrec tls psk 1").hex()
IDENTITY = "tenrec 1"
FOLDER = tempfile.TemporaryDirectory(prefix="tenrec-foreign-")
HOST = "127.0.0.1"


def path(name):
    return os.path.join(FOLDER.name, name)


def write(name, text):
    with open(os.open(path(name), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
        f.write(text)


def openssl(*args):
    got = run("openssl", *args)
    true(got.returncode == 0, f"openssl {' '.join(args)}: {got.stderr}")


def make_authority(name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", f"/CN={name}", "-keyout", path(f"{name}.key"), "-out", path(f"{name}.pem"))


def make_certificate(name, dns, by="ours", days=2):
    """NAME.pem and NAME.key, for `days` from now; a negative number makes an expired one."""
    write(f"{name}.ext", f"subjectAltName=DNS:{dns}\n")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
            "-keyout", path(f"{name}.key"), "-out", path(f"{name}.csr"))
    openssl("x509", "-req", "-in", path(f"{name}.csr"), "-CA", path(f"{by}.pem"), "-CAkey", path(f"{by}.key"),
            "-set_serial", str(int.from_bytes(os.urandom(8), "big")), "-days", str(days), "-extfile",
            path(f"{name}.ext"), "-out", path(f"{name}.pem"))


def make_files():
    write("secret", SECRET.hex() + "\n")
    make_authority("ours")
    make_authority("theirs")
    for rank in range(3):
        make_certificate(f"worker{rank}", f"worker{rank}")
    make_certificate("another", "worker7")
    make_certificate("expired", "worker1", days=-1)
    make_certificate("stranger", "worker1", by="theirs")


def psk(key=KEY, identity=IDENTITY):
    return ["-psk", key, "-psk_identity", identity]


def certified(name):
    return ["-cert", path(f"{name}.pem"), "-key", path(f"{name}.key"), "-CAfile", path("ours.pem")]


def settings(mode, rank):
    """Variables of a worker in this mode."""
    env = {"TENREC_SECURITY__MODE": mode}
    if mode in ("secret", "tls"):
        env["TENREC_SECRET_FILE"] = path("secret")
    if mode == "mtls":
        env.update(TENREC_SECURITY__MTLS__CA=path("ours.pem"), TENREC_SECURITY__MTLS__CERT=path(f"worker{rank}.pem"),
                   TENREC_SECURITY__MTLS__KEY=path(f"worker{rank}.key"))
    return env


def group(mode, n=2, **more):
    """Workers in this mode that meet in a file."""
    crew = Crew()
    try:
        crew.store = f"file://{crew.folder.name}/store"
        crew.start([backend(RANK=str(r), WORLD_SIZE=str(n), **settings(mode, r), **more) for r in range(n)])
        crew.all(f"init init_method={crew.store}")
    except BaseException:
        crew.__exit__(Exception)
        raise
    return crew


def port_of(crew, rank):
    got = run(TENREC, "ping", "--json", "--store", crew.store, env=environment())
    true(got.returncode == 0, got.stderr)
    return int(json.loads(got.stdout)["members"][rank]["address"].rsplit(":", 1)[1])


def counter(crew, name, rank=0):
    return int(crew[rank].do(f"info tensorpipe.{name}"))


def end(crew, *told):
    """The group ends well; worker 0 has logged each of these texts, and nothing if it is empty."""
    equal(crew.all("exchange 1"), [str(3 * len(crew.puppets))] * len(crew.puppets), "calls")
    crew.all(f"shutdown graceful {LONG_MS}")
    crew.release()
    for process in crew.processes:
        status, out, errors = crew.ended(process)
        equal((status, out), (0, ""), f"status and output, with {errors!r}")
        for text in told if process is crew.processes[0] else ():
            contains(errors, text)
        if not told or process is not crew.processes[0]:
            equal(errors, "", "errors")


class Foreign:
    """A process of openssl. Its output is in a file, so that it never waits for its reader."""

    def __init__(self, *command):
        with tempfile.TemporaryFile() as out:
            self.process = subprocess.Popen(["openssl", *[str(c) for c in command]], stdin=subprocess.PIPE,
                                            stdout=out, stderr=subprocess.STDOUT)
            self.out = os.dup(out.fileno())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGKILL)
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait(LIMIT_S)
        os.close(self.out)

    def said(self):
        return os.pread(self.out, 1 << 20, 0)

    def has_said(self, what):
        """Until the process has written this; what it has written in all."""
        def is_there():
            if what in self.said():
                return True
            if self.process.poll() is not None and what not in self.said():
                raise Failed(f"openssl ended and has not said {what!r} but {self.said()!r}")
            return False

        until(is_there, f"{what!r} of openssl")
        return self.said()

    def send(self, data):
        """Until openssl has read it: what it reads at once is a command or bytes for the other side."""
        try:
            os.write(self.process.stdin.fileno(), data)
        except BrokenPipeError:
            return
        deadline = time.monotonic() + LIMIT_S
        while self.unread() and self.process.poll() is None:
            true(time.monotonic() < deadline, "openssl reads nothing")
            os.sched_yield()  # shorter than the pause of `until`: a case sends thousands of pieces

    def unread(self):
        size = array.array("i", [0])
        fcntl.ioctl(self.process.stdin, termios.FIONREAD, size)
        return size[0]

    def ends(self):
        """Until the process ends: what it has written in all."""
        try:
            self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"openssl does not end, and says {self.said()!r}") from None
        return self.said().decode(errors="replace")


class Client(Foreign):
    """s_client, which also prints what the proof of the group secret is bound to."""

    def __init__(self, port, *options):
        super().__init__("s_client", "-connect", f"{HOST}:{port}", "-keymatexport", "EXPORTER-tenrec-proof",
                         "-keymatexportlen", "32", *options)

    def connected(self):
        """Until the handshake is over: the binding."""
        title = b"Keying material: "
        self.has_said(title)
        until(lambda: b"\n" in self.said().split(title)[1], "the end of the line")
        return bytes.fromhex(self.said().split(title)[1].split()[0].decode())

    def change_keys(self, letter):
        """'k': its own; 'K': asks for those of the other side, too. They leave with the next bytes."""
        self.send(letter + b"\n")


class Server(Foreign):
    """s_server at a port that no other process knows."""

    def __init__(self, port, *options):
        super().__init__("s_server", "-accept", f"{HOST}:{port}", *options)
        self.has_said(b"ACCEPT")
