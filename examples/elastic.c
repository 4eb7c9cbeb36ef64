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
    int64_t a;
    tenrec_status st = tenrec_call_get_args(call, err, "i", &a);
    struct tenrec_value sum;

    (void)arg;
    if (st != TENREC_OK)
        return st;
    sum = tenrec_value_int(a + 1);
    return tenrec_call_return(call, &sum, err);
}

/* Calls all present members. A member that has just left is not an error. */
static tenrec_status call_all(struct tenrec_worker *w, int64_t *calls, tenrec_error *err)
{
    struct tenrec_group_view *v;
    tenrec_status st = tenrec_group_view_get(w, &v, err);

    if (st != TENREC_OK)
        return st;
    for (uint32_t i = 0; i < v->n && st == TENREC_OK; i++) {
        struct tenrec_value arg = tenrec_value_int(*calls), *got = NULL;
        st = tenrec_rpc_sync(w, v->member[i].name, "add_one", &arg, 1, NULL, &got, err);
        *calls = st == TENREC_OK ? got->u.integer : *calls;
        tenrec_value_drop(got);
        if (st == TENREC_EPEER_UNKNOWN || st == TENREC_EPEER_LOST || st == TENREC_ECONNECT)
            st = TENREC_OK;
    }
    tenrec_group_view_drop(v);
    return st;
}

int main(int argc, char **argv)
{
    const struct tenrec_member_callbacks c = { .size = sizeof c, .joined = joined, .left = left };
    struct tenrec_worker *w = NULL;
    const long long wanted = argc > 1 ? strtoll(argv[1], NULL, 10) : CALLS;
    int64_t calls = 0;
    tenrec_error err;
    bool ok = tenrec_worker_new(NULL, &w, &err) == TENREC_OK &&
              tenrec_worker_register_function(w, "add_one", add_one, NULL, 0, &err) == TENREC_OK &&
              tenrec_worker_set_member_callbacks(w, &c, &err) == TENREC_OK &&
              tenrec_init_rpc(w, &err) == TENREC_OK;

    while (ok && calls < wanted) {
        ok = call_all(w, &calls, &err) == TENREC_OK;
        poll(NULL, 0, PAUSE_MS);
    }
    ok = ok && tenrec_shutdown(w, TENREC_GRACEFUL, SOON_MS, &err) == TENREC_OK;
    if (ok)
        printf("%lld calls\n", (long long)calls);
    else
        fprintf(stderr, "elastic: %s\n", err.text);
    tenrec_worker_drop(w);
    return !ok;
}
