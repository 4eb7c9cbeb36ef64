/* SPDX-License-Identifier: Apache-2.0 */
/* elastic.c - workers that join and leave: tenrec run --elastic 2:4 -- elastic [CALLS]
 *
 * Each worker calls all members, itself included, until it has made enough calls,
 * and leaves. Kill a worker: the others continue, and the run restarts it. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenrec/tenrec.h>

enum { CALLS = 10000 /* some ten seconds */, PAUSE_MS = 4, SOON_MS = 30000 };

static void joined(struct tenrec_worker *w, const struct tenrec_worker_info *who, uint64_t version,
                   void *arg)
{
    (void)w, (void)arg;
    printf("view %llu: %s has joined\n", (unsigned long long)version, who->name);
}

static void left(struct tenrec_worker *w, const struct tenrec_worker_info *who,
                 const tenrec_error *why, uint64_t version, void *arg)
{
    (void)w, (void)who, (void)arg;
    printf("view %llu: %s\n", (unsigned long long)version, why->text);
}

static tenrec_status add_one(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_value sum;
    int64_t a;

    (void)arg;
    if (tenrec_call_get_args(call, err, "i", &a))
        return err->code;
    sum = tenrec_value_int(a + 1);
    return tenrec_call_return(call, &sum, err);
}

/* Calls all present members. A member that has just left is not an error. */
static tenrec_status call_all(struct tenrec_worker *w, int64_t *calls, tenrec_error *err)
{
    struct tenrec_group_view *v;
    tenrec_status status = tenrec_group_view_get(w, &v, err);
    int64_t next;

    if (status)
        return status;
    for (uint32_t i = 0; i < v->n && !status; i++) {
        status = tenrec_call(w, v->member[i].name, "add_one", err, "i>i", *calls, &next);
        *calls = status ? *calls : next;
        if (status == TENREC_EPEER_UNKNOWN || status == TENREC_EPEER_LOST ||
            status == TENREC_ECONNECT)
            status = TENREC_OK;
    }
    tenrec_group_view_drop(v);
    return status;
}

int main(int argc, char **argv)
{
    const struct tenrec_member_callbacks c = { .size = sizeof c, .joined = joined, .left = left };
    struct tenrec_worker *w = NULL;
    const long long wanted = argc > 1 ? strtoll(argv[1], NULL, 10) : CALLS;
    int64_t calls = 0;
    tenrec_error err;
    bool failed = tenrec_worker_new(NULL, &w, &err) ||
                  tenrec_worker_register_function(w, "add_one", add_one, NULL, 0, &err) ||
                  tenrec_worker_set_member_callbacks(w, &c, &err) || tenrec_init_rpc(w, &err);

    while (!failed && calls < wanted) {
        failed = call_all(w, &calls, &err);
        poll(NULL, 0, PAUSE_MS);
    }
    failed = failed || tenrec_shutdown(w, TENREC_GRACEFUL, SOON_MS, &err);
    if (failed)
        tenrec_error_print(&err, "elastic");
    else
        printf("%lld calls\n", (long long)calls);
    tenrec_worker_drop(w);
    return failed;
}
