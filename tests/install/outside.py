# SPDX-License-Identifier: Apache-2.0
"""outside.py BUILDDIR CC [FLAG ...] - what is installed is enough to build with.

Installs into a folder below BUILDDIR; then a program and a plugin outside of
the tree are built from there with pkg-config, and run. The flags are those
that this build instruments its code with.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(sys.argv[1])
CC = json.loads(sys.argv[2])
FLAGS = sys.argv[3:]
# The compiler of C++ beside that of C; the flags of a sanitizer need the same one.
CXX = shutil.which({"gcc": "g++", "clang": "clang++"}.get(os.path.basename(CC[-1]).split("-")[0], "c++"))
HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "examples")
STAGE = os.path.join(BUILD, "stage")
count = 0
failed = False


def case(name, problem):
    global count, failed
    count += 1
    failed = failed or bool(problem)
    print(f"{'not ok' if problem else 'ok'} {count} - {name}")
    for line in (problem or "").splitlines():
        print(f"# {line}")


def run(*command, **kw):
    """(output, problem): the problem is empty when the command succeeded."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              stdin=subprocess.DEVNULL, check=False, **kw)
    except OSError as e:
        return "", str(e)
    told = f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}"
    return done.stdout.strip(), told if done.returncode else ""


def options():
    out, _ = run("meson", "introspect", "--buildoptions", BUILD)
    return {o["name"]: o["value"] for o in json.loads(out)}


def registers(program, plugin, where, env):
    """The problem of a program that must load a plugin."""
    out, problem = run(program, plugin, cwd=where, env=env)
    if not problem and out.splitlines()[-1:] != [f"{plugin} is registered"]:
        problem = f"the program said: {out}"
    return problem


# What an author gets wrong: a line of the source and what stands there instead, and the rule that is broken.
MISTAKES = {
    "backend": ("    tenrec_done_succeed(done);\n", "", "AG-4"),
    "wrapper": ("    self->host->deliver_outer(", "    if (msg->type & TENREC_MSG_REQUEST_BIT)\n        self->host->deliver_outer(", "AG-10"),
    "store": ("    pthread_cond_broadcast(&changed);\n", "", "ST-8"),
    "backend_that_alters": ("    copy->id = msg->id;\n", "", "AG-10"),
}


def begin_plugins(tenrec, where, env):
    """`tenrec plugin new` makes folders that build and pass their tests, which see mistakes."""
    env = dict(env, PATH=os.path.dirname(tenrec) + ":" + env["PATH"], CC=" ".join(CC),
               CFLAGS=" ".join(FLAGS) + " -Werror",
               CXX=CXX or "", CXXFLAGS=" ".join(FLAGS) + " -Werror")

    def make(name, kind, mistake=None, language="c"):
        out, problem = run(tenrec, "plugin", "new", name, "--kind", kind, "--language", language, cwd=where, env=env)
        source = os.path.join(where, name, f"{name}.c")
        if mistake and not problem:
            with open(source, encoding="utf-8") as f:
                text = f.read()
            if mistake[0] not in text:
                return out, f"{source} has no {mistake[0]!r}"
            with open(source, "w", encoding="utf-8") as f:
                f.write(text.replace(mistake[0], mistake[1]))
        if problem or not mistake:
            return (out, problem) if problem else run("make", "-C", name, "test", cwd=where, env=env)
        out, problem = run("make", "-C", name, cwd=where, env=env)
        return (out, problem) if problem else run(tenrec, "conformance", "--limit", "500ms", *([] if kind == "wrapper" else ["--workers", "1"]),
                                                  *([f"{name}://test"] if kind == "store" else []), f"{name}/{name}.yaml", cwd=where, env=env)

    for kind in ("backend", "wrapper", "store", "observer"):
        _, problem = make(f"my_{kind}", kind)
        case(f"install_tenrec_begins_a_{kind}_that_passes_its_test", problem)
        if CXX:
            _, problem = make(f"our_{kind}", kind, language="c++")
            case(f"install_tenrec_begins_a_{kind}_in_cxx_that_passes_its_test", problem)
    # What became of two: a wrapper that changes messages, and a backend over Unix datagrams.
    shutil.copytree(os.path.join(EXAMPLES, "seal"), os.path.join(where, "seal"))
    case("install_wrapper_that_changes_messages_passes_its_test", run("make", "-C", "seal", "test", cwd=where, env=env)[1])
    shutil.copytree(os.path.join(EXAMPLES, "datagram"), os.path.join(where, "datagram"))
    _, problem = run("make", "-C", "datagram", "test", cwd=where, env=env)
    case("install_backend_over_datagrams_passes_its_test", problem)
    if not problem:
        _, problem = run(*CC, *FLAGS, os.path.join(EXAMPLES, "hello.c"), "-o", "hello",
                         *run("pkg-config", "--cflags", "--libs", "tenrec", env=env)[0].split(), cwd=where, env=env)
    if not problem:
        _, problem = run(tenrec, "run", "-n", "2", "--config", "datagram/datagram.yaml", "--", "./hello", cwd=where, env=env)
    case("install_backend_over_datagrams_serves_a_group_with_a_secret", problem)
    for name, mistake in MISTAKES.items():
        out, problem = make(name, name.split("_")[0], mistake)
        broken = [line for line in out.splitlines() if line.startswith("rules broken:")]
        case(f"install_conformance_names_the_rule_of_a_mistake_in_a_{name}",
             "" if problem and broken and mistake[2] in broken[0].split() else f"{mistake[2]} is not named:\n{out}\n{problem}")


def find_in_a_moved_folder(prefix, env):
    """The files of pkg-config name what lies beside them, wherever that is: the folder below STAGE is not the prefix of the build."""
    folder = run("pkg-config", "--variable=pcfiledir", "tenrec", env=env)[0]
    for package in ("tenrec", "tenrec-torch", "tenrec-testkit"):
        flags, problem = run("pkg-config", "--cflags", "--libs", package, env=env)
        wrong = [flag for flag in flags.split() if flag[:2] in ("-I", "-L") and not os.path.realpath(flag[2:]).startswith(os.path.realpath(prefix) + "/")]
        case(f"install_pkg_config_finds_{package.replace('-', '_')}_in_a_moved_folder",
             problem or (f"{folder}/{package}.pc names other places: {wrong or flags}; is pkgconfig.relocatable off, as in build folders "
                         "from before it became the default?" if wrong or "-I" not in flags else ""))


def build_with_the_build_folder(where, env):
    """What has not been installed is found by the .pc files of the build."""
    env = dict(env, PKG_CONFIG_PATH=os.path.join(BUILD, "meson-uninstalled"),
               LD_LIBRARY_PATH=os.path.join(BUILD, "libtenrec"))
    flags, problem = run("pkg-config", "--cflags", "--libs", "tenrec", env=env)
    env["TENREC_PLUGIN_PATH"], _ = run("pkg-config", "--variable=plugindir", "tenrec", env=env)
    if not problem:
        _, problem = run(*CC, *FLAGS, "program.c", "-o", "early", *flags.split(), cwd=where)
    case("build_folder_is_enough_to_build_with", problem or registers("./early", "echo", where, env))


def refuses(program, where, env):
    """The problem of a program for torch's groups, which the default configuration is not for."""
    out, problem = run(program, cwd=where, env=env)
    return "" if problem and "group_protocol" in out else f"it said: {out}\n{problem}"


def build_a_member_of_torchs_group(where, env):
    shutil.copy(os.path.join(EXAMPLES, "torch_member", "parameter_server.c"), where)
    flags, problem = run("pkg-config", "--cflags", "--libs", "tenrec-torch", env=env)
    if not problem:
        _, problem = run(*CC, *FLAGS, "parameter_server.c", "-o", "parameter_server", *flags.split(), "-pthread", cwd=where)
    case("install_member_of_torchs_group_builds_outside", problem or refuses("./parameter_server", where, env))


def build_with_the_static_library(where, cflags, env):
    libs, problem = run("pkg-config", "--libs", "libuv", "yaml-0.1", "libcrypto", "libssl", "libxxhash")
    if not problem:
        for program, whole in (("program.c", "whole"), ("parameter_server.c", "whole_member")):
            _, wrong = run(*CC, *FLAGS, program, "-o", whole, *cflags.split(),
                           os.path.join(BUILD, "libtenrec", "libtenrec.a"), *libs.split(), "-ldl", "-lm", "-pthread", cwd=where)
            problem = problem or wrong
    env = dict(env, LD_LIBRARY_PATH="")
    case("install_program_with_the_static_library_loads_a_plugin", problem or registers("./whole", "outside", where, env))
    env["TENREC_PLUGIN_PATH"], _ = run("pkg-config", "--variable=plugindir", "tenrec", env=env)
    case("install_member_of_torchs_group_links_the_static_library", problem or refuses("./whole_member", where, env))


def build_with_cmake(prefix, where, env):
    """find_package finds the installed folder, and says what it has not."""
    begin = ["cmake", "-S", where, "-B", os.path.join(where, "cmake"), f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_C_FLAGS=" + " ".join(FLAGS)]
    out, problem = run(*begin, env=dict(env, CC=" ".join(CC)))
    if not problem and f"plugins in {prefix}" not in out:
        problem = f"another tenrec is found:\n{out}"
    if not problem:
        _, problem = run("cmake", "--build", os.path.join(where, "cmake"), env=env)
    case("install_cmake_finds_tenrec", problem)
    case("install_program_by_cmake_loads_a_plugin", registers("./cmake/by_cmake", "echo", where, env))
    case("install_test_by_cmake_passes", run("./cmake/test_by_cmake", cwd=where, env=env)[1])
    with open(os.path.join(where, "CMakeLists.txt"), encoding="utf-8") as f:
        text = f.read()
    for wrong, part in (("0.1 REQUIRED", "requested version \"9\""), ("COMPONENTS testkit", "no component 'tastekit'")):
        with open(os.path.join(where, "CMakeLists.txt"), "w", encoding="utf-8") as f:
            f.write(text.replace(wrong, wrong.replace("0.1", "9").replace("testkit", "tastekit")))
        out, problem = run(*begin, env=dict(env, CC=" ".join(CC)))
        case(f"install_cmake_refuses_{wrong.split()[-1].lower()}", "" if problem and part in problem else f"{part} is not said:\n{out}{problem}")


def main():
    shutil.rmtree(STAGE, ignore_errors=True)
    _, problem = run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", STAGE)
    case("install_puts_everything_into_a_folder", problem)

    option = options()
    prefix = STAGE + option["prefix"]
    libdir = os.path.join(prefix, option["libdir"])
    env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(libdir, "pkgconfig"),
               LD_LIBRARY_PATH=libdir, TENREC_LOG="warn")
    env.pop("TENREC_PLUGIN_PATH", None)

    def ask(*what, package="tenrec"):
        return run("pkg-config", *what, package, env=env)

    version, problem = ask("--modversion")
    case("install_pkg_config_knows_tenrec", problem)
    plugindir, problem = ask("--variable=plugindir")
    if not problem and not os.path.exists(os.path.join(plugindir, "echo.so")):
        problem = f"there is no echo.so in plugindir {plugindir}"
    case("install_pkg_config_says_where_plugins_are", problem)
    flags, problem = ask("--cflags", "--libs")
    case("install_pkg_config_has_flags", problem)
    find_in_a_moved_folder(prefix, env)
    soname = os.path.join(libdir, "libtenrec.so.1")
    case("install_has_the_library_by_its_soname",
         "" if os.path.exists(soname) else f"there is no {soname}")

    with tempfile.TemporaryDirectory(prefix="tenrec-outside-") as outside:
        for name in ("program.c", "outside.c"):
            shutil.copy(os.path.join(HERE, name), outside)
        strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", *FLAGS]
        _, problem = run(*CC, *strict, "program.c", "-o", "program", *flags.split(), cwd=outside)
        case("install_program_builds_outside", problem)
        plugin_flags, _ = ask("--cflags")
        _, problem = run(*CC, *strict, "-shared", "-fPIC", "-fvisibility=hidden", "outside.c",
                         "-o", "outside.so", *plugin_flags.split(), cwd=outside)
        case("install_plugin_builds_outside", problem)
        # The build's prefix is another one than this folder: the library finds echo beside itself.
        env["TENREC_PLUGIN_PATH"] = outside
        for name in ("outside", "echo"):
            case(f"install_program_outside_loads_{name}", registers("./program", name, outside, env))
        build_with_the_build_folder(outside, env)
        begin_plugins(os.path.join(prefix, option["bindir"], "tenrec"), outside, env)
        build_a_member_of_torchs_group(outside, env)
        build_with_the_static_library(outside, plugin_flags, env)
        kit_flags, problem = ask("--cflags", "--libs", package="tenrec-testkit")
        case("install_pkg_config_knows_the_test_kit", problem)
        shutil.copy(os.path.join(EXAMPLES, "service_test.c"), outside)
        _, problem = run(*CC, *strict, "service_test.c", "-o", "service_test", *kit_flags.split(),
                         cwd=outside)
        case("install_test_of_a_service_builds_outside", problem)
        _, problem = run("./service_test", cwd=outside, env=env)
        case("install_test_of_a_service_passes_outside", problem)
        shutil.copy(os.path.join(HERE, "CMakeLists.txt"), outside)
        build_with_cmake(prefix, outside, env)
        command = os.path.join(prefix, option["bindir"], "tenrec")
        out, problem = run(command, "info", cwd=outside, env=env)
        missing = [name for name in ("outside", "echo") if name not in out]
        if not problem and missing:
            problem = f"tenrec info does not list {missing}:\n{out}"
        case("install_command_lists_the_plugins_outside_and_of_its_own_prefix", problem)
        out, problem = run(command, "--version", cwd=outside, env=env)
        if not problem and version not in out:
            problem = f"tenrec --version says {out}, pkg-config {version}"
        case("install_command_and_pkg_config_agree_on_the_version", problem)


main()
print(f"1..{count}")
sys.exit(failed)
