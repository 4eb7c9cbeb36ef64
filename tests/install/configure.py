# SPDX-License-Identifier: Apache-2.0
"""configure.py ROOT - `meson setup` refuses what cannot be built, and says why: machines whose memory is laid out otherwise,
and parts that are asked for.

clang compiles for each of them without a library of theirs; the linker of this machine speaks for a linker of theirs.
"""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(sys.argv[1])
LIMIT_S = 150
count = 0
failed = False

# Name of the case: the target of clang, the family and the byte order that the cross file says, and a part of the reason.
MACHINES = {
    "32_bit_machine": ("i386-linux-gnu", "x86", "little", "pointers of 4 bytes"),
    "big_endian_machine": ("s390x-linux-gnu", "s390x", "big", "is big-endian"),
    "32_bit_abi_of_a_64_bit_processor": ("x86_64-linux-gnux32", "x86_64", "little", "pointers of 4 bytes"),
    "big_endian_compiler_in_a_wrong_cross_file": ("aarch64_be-linux-gnu", "aarch64", "little", "is big-endian"),
}
# Name of the case: the options, and the reason.
PARTS = {
    "torch_without_the_package_for_python": (["-Dtorch=enabled", "-Dpython=disabled"],
                                             "option torch is enabled, and the backend of torch.distributed.rpc cannot be built: it needs the package tenrec_rpc"),
    "torch_with_the_static_library_alone": (["-Dtorch=enabled", "-Ddefault_library=static"],
                                            "option torch is enabled, and the backend of torch.distributed.rpc cannot be built: default_library is static"),
}
COMPILER = """#!/bin/sh
case "$*" in *-Wl,--version*) exec ld --version ;; esac
exec clang --target={0} "$@"
"""
CROSS = """[binaries]
c = '{3}'
[host_machine]
system = 'linux'
cpu_family = '{1}'
cpu = '{1}'
endian = '{2}'
[properties]
needs_exe_wrapper = true
"""


def case(name, problem):
    global count, failed
    count += 1
    failed = failed or bool(problem)
    print(f"{'not ok' if problem else 'ok'} {count} - {name}")
    for line in problem.splitlines():
        print(f"# {line}")


def setup(folder, *options, **env):
    return subprocess.run(["meson", "setup", os.path.join(folder, "build"), ROOT, *options], cwd=ROOT, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False, **env)


def configure(target, family, endian, folder):
    path, compiler = os.path.join(folder, "cross.ini"), os.path.join(folder, "cc")
    with open(compiler, "w", encoding="utf-8") as f:
        f.write(COMPILER.format(target))
    os.chmod(compiler, 0o755)
    with open(path, "w", encoding="utf-8") as f:
        f.write(CROSS.format(target, family, endian, compiler))
    env = {k: v for k, v in os.environ.items() if k not in ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS")}
    return setup(folder, "--cross-file", path, env=env)


def errors_of(done):
    return [line for line in done.stdout.splitlines() if "ERROR" in line]


def refuse_parts():
    for name, (options, reason) in PARTS.items():
        with tempfile.TemporaryDirectory(prefix="tenrec-configure-") as folder:
            done = setup(folder, "-Dtests=false", *options)
        said = errors_of(done)
        ok = done.returncode and len(said) == 1 and reason in said[0]
        case(f"configure_refuses_{name}", "" if ok else f"expected {reason!r}; exit status {done.returncode}:\n{done.stdout[-2000:]}")


def refuse_python_without_torch():
    with tempfile.TemporaryDirectory(prefix="tenrec-configure-") as folder:
        bare = os.path.join(folder, "bare")
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", bare], check=True, timeout=LIMIT_S)
        done = setup(folder, "-Dtests=false", "-Dtorch=enabled", f"-Dtorch_python={bare}/bin/python")
    said = errors_of(done)
    ok = done.returncode and len(said) == 1 and "missing modules: torch" in said[0]
    case("configure_refuses_a_python_without_torch", "" if ok else f"exit status {done.returncode}:\n{done.stdout[-2000:]}")


def main():
    refuse_parts()
    refuse_python_without_torch()
    for name, (target, family, endian, reason) in MACHINES.items():
        with tempfile.TemporaryDirectory(prefix="tenrec-configure-") as folder:
            done = configure(target, family, endian, folder)
        said = errors_of(done)
        wanted = (family + ": only 64-bit little-endian machines", reason, "little-endian words of 64 bits")
        ok = done.returncode and len(said) == 1 and all(part in said[0] for part in wanted)
        case(f"configure_refuses_a_{name}", "" if ok else f"expected {wanted}; exit status {done.returncode}:\n{done.stdout[-2000:]}")


main()
print(f"1..{count}")
sys.exit(failed)
