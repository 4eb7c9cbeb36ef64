# SPDX-License-Identifier: Apache-2.0
"""headers.py CC [CXX] - every public header compiles alone, as C11, C++17 and C++20, as do a small program
and a small plugin in C++."""
import json
import os
import subprocess
import sys

import report

STRICT = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


STANDARDS = {"c++17": "cpp17", "c++20": "cpp20"}

PROGRAM = """
#include <tenrec/tenrec.h>

static tenrec_status add(struct tenrec_call *call, void *, tenrec_error *err)
{
    int64_t a = 0, b = 0;
    const tenrec_status st = tenrec_call_get_args(call, err, "ii", &a, &b);

    if (st != TENREC_OK)
        return st;
    const struct tenrec_value sum = tenrec_value_int(a + b);
    return tenrec_call_return(call, &sum, err);
}

int main()
{
    const int64_t shape[] = { 2 };
    struct tenrec_tensor *t = nullptr;
    struct tenrec_worker *w = nullptr;
    struct tenrec_value *sum = nullptr;
    tenrec_error err;

    if (tenrec_tensor_new(TENREC_FLOAT32, 1, shape, &t, &err) || tenrec_worker_new(nullptr, &w, &err) ||
        tenrec_worker_register_function(w, "add", add, nullptr, TENREC_POOL, &err) || tenrec_init_rpc(w, &err))
        return 1;
    const struct tenrec_value args[] = { tenrec_value_int(1), tenrec_value_text("x"), tenrec_value_tensor(t) };
    return tenrec_rpc_sync(w, "worker0", "add", args, 3, nullptr, &sum, &err);
}
"""

# Designated initializers are C++20; before it the macros give the members in their order.
PLUGIN = """
#include <cstddef>
#include <tenrec/observer_plugin.h>
#include <tenrec/store_plugin.h>

namespace {
struct options {
    int64_t delay;
};
const struct tenrec_option table[] = {
    { "delay", TENREC_OPT_INT, tenrec_option_type(), offsetof(struct options, delay), 0, "0", 0, 0, nullptr, "a number",
      nullptr, { nullptr } },
};
}

extern "C" {
#if __cplusplus >= 202002L
const struct tenrec_plugin tenrec_plugin = { TENREC_PLUGIN_HEADER, .flags = TENREC_PLUGIN_UNLOADABLE, .reserved0 = 0,
    .name = "small", .version = "1", .summary = "Compiles.", TENREC_PLUGIN_OPTIONS(table, struct options),
    .reserved1 = 0, .reserved2 = nullptr, .extensions = nullptr, .reserved3 = {} };
#else
const struct tenrec_plugin tenrec_plugin = { TENREC_PLUGIN_HEADER, TENREC_PLUGIN_UNLOADABLE, 0,
    "small", "1", "Compiles.", TENREC_PLUGIN_OPTIONS(table, struct options), 0, nullptr, nullptr, {} };
#endif

tenrec_status tenrec_construct_options(void *, tenrec_error *)
{
    return TENREC_OK;
}

tenrec_status tenrec_init_agent(const struct tenrec_init *, struct tenrec_agent *self, tenrec_error *err)
{
    static struct tenrec_agent_ops ops;

    if (TENREC_REQUIRES(self->host, hold, err) != TENREC_OK)
        return TENREC_EABI;
    ops.size = sizeof ops;
    ops.send = [](struct tenrec_agent *, tenrec_peer, struct tenrec_msg *msg, struct tenrec_done done) {
        msg->release(msg);
        tenrec_done_fail(done, TENREC_EUNSUPPORTED, "sends nothing");
    };
    self->ops = &ops;
    return TENREC_OK;
}
}
"""


def compiles(compiler, language, standard, source):
    done = subprocess.run(
        compiler + STRICT + [f"-std={standard}", "-x", language, "-I",
                             os.path.join(report.ROOT, "include"), "-"],
        input=source, capture_output=True, text=True, check=False)
    return done.stderr.splitlines() if done.returncode else []


def compile_alone(compiler, language, standard, header):
    # Twice, so that a missing include guard shows too; and a header may have macros only.
    return compiles(compiler, language, standard,
                    f"#include <{header}>\n#include <{header}>\nextern int something;\n")


def main():
    cc = json.loads(sys.argv[1])
    cxx = json.loads(sys.argv[2]) if len(sys.argv) > 2 else None
    for path in report.files("include", ends=(".h",)):
        header = os.path.relpath(path, "include")
        stem = header.replace("/", "_").replace(".h", "")
        report.case(f"headers_{stem}_compiles_alone_as_c11",
                    compile_alone(cc, "c", "c11", header))
        for standard, name in STANDARDS.items():
            if cxx:
                report.case(f"headers_{stem}_compiles_alone_as_{name}", compile_alone(cxx, "c++", standard, header))
            else:
                report.skip(f"headers_{stem}_compiles_alone_as_{name}", "no C++ compiler")
    for path in report.files("include", ends=(".hpp",)):
        header = os.path.relpath(path, "include")
        stem = header.replace("/", "_").replace(".", "_")
        for standard, name in STANDARDS.items():
            if cxx:
                report.case(f"headers_{stem}_compiles_alone_as_{name}", compile_alone(cxx, "c++", standard, header))
            else:
                report.skip(f"headers_{stem}_compiles_alone_as_{name}", "no C++ compiler")
    for kind, source in (("program", PROGRAM), ("plugin", PLUGIN)):
        for standard, name in STANDARDS.items():
            if cxx:
                report.case(f"headers_a_{kind}_compiles_as_{name}", compiles(cxx, "c++", standard, source))
            else:
                report.skip(f"headers_a_{kind}_compiles_as_{name}", "no C++ compiler")
    report.finish()


main()
