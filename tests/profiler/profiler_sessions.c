/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler_sessions.h"
#include "../support/functions.h"
#include "../testing.h"
#include "profiler_functions.h"

struct cluster three;

void open_three(void)
{
    static const char *const extra[] = { "worker.num_worker_threads=2", NULL };

    cluster_open(&three, 3, extra, profiler_functions_register);
}

void close_three(void)
{
    functions_open_gate();
    cluster_close(&three, TENREC_GRACEFUL);
}

struct tenrec_profiler *start(size_t rank, enum tenrec_profiler_scope scope, uint32_t flags)
{
    const struct tenrec_profiler_options o = { .size = sizeof o, .scope = scope, .flags = flags };
    struct tenrec_profiler *p = NULL;
    tenrec_error err;

    assert_status(tenrec_profiler_start(scope == TENREC_PROFILE_SERVER ? NULL : three.worker[rank],
                                        &o, &p, &err),
                  &err);
    return p;
}

void stop(struct tenrec_profiler *p)
{
    tenrec_error err;

    assert_status(tenrec_profiler_stop(p, &err), &err);
}

void call(size_t from, const char *to, const char *fn, const struct tenrec_value *args, size_t n)
{
    tenrec_error err;

    assert_status(tenrec_rpc_sync(three.worker[from], to, fn, args, n, NULL, NULL, &err), &err);
}

/* The event of exactly this name, which there must be once. */
const struct tenrec_event *one(const struct tenrec_profiler *p, const char *name)
{
    const struct tenrec_event *found = NULL, *e;
    size_t times = 0;

    for (size_t i = 0; (e = tenrec_profiler_event(p, i)); i++) {
        if (strcmp(e->name, name) == 0) {
            found = e;
            times++;
        }
    }
    if (times != 1) {
        for (size_t i = 0; (e = tenrec_profiler_event(p, i)); i++)
            print_message("# %s\n", e->name);
        fail_msg("'%s' was recorded %zu times", name, times);
    }
    return found;
}

bool within(const struct tenrec_event *inner, const struct tenrec_event *outer)
{
    return inner->start_ns >= outer->start_ns &&
           inner->start_ns + inner->duration_ns <= outer->start_ns + outer->duration_ns;
}
