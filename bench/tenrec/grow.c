/* SPDX-License-Identifier: Apache-2.0 */
/* grow.c - one of N workers of a group, started by bench/grow: connects to all others, and
 * shuts down together with them. Prints how long both took. */
#include "samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/tenrec.h>

enum { LIMIT_MS = 120000 };

static int give_up(const tenrec_error *err)
{
    fprintf(stderr, "grow: %s\n", err->text);
    return 1;
}

/* One call to each of the others, all under way at once. */
static tenrec_status call_all(struct tenrec_worker *w, tenrec_error *err)
{
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = LIMIT_MS };
    struct tenrec_worker_info me, *info;
    struct tenrec_future **f;
    tenrec_status st = tenrec_get_worker_info(w, NULL, &me, err);
    size_t n = 0, made = 0;

    tenrec_get_worker_infos(w, NULL, 0, &n, NULL);
    info = calloc(n, sizeof *info);
    f = calloc(n, sizeof(struct tenrec_future *));
    if (!info || !f)
        abort();
    tenrec_get_worker_infos(w, info, n, &n, NULL);
    for (size_t i = 1; i < n && st == TENREC_OK; i++) {
        const char *to = info[((size_t)me.id + i) % n].name;
        st = tenrec_rpc_async(w, to, "tenrec.ping", NULL, 0, &o, &f[made], err);
        made += st == TENREC_OK;
    }
    for (size_t i = 0; i < made; i++) {
        tenrec_status one = tenrec_future_wait(f[i], LIMIT_MS, st == TENREC_OK ? err : NULL);
        st = st == TENREC_OK ? one : st;
        tenrec_future_drop(f[i]);
    }
    free(f);
    free(info);
    return st;
}

int main(void)
{
    struct tenrec_worker *w = NULL;
    uint64_t ns[5];
    tenrec_error err;

    ns[0] = samples_now_ns();
    if (tenrec_worker_new(NULL, &w, &err) || tenrec_init_rpc(w, &err))
        return give_up(&err);
    ns[1] = samples_now_ns();
    if (tenrec_barrier(w, NULL, 0, LIMIT_MS, &err))
        return give_up(&err);
    ns[2] = samples_now_ns();
    if (call_all(w, &err))
        return give_up(&err);
    ns[3] = samples_now_ns();
    if (tenrec_barrier(w, NULL, 0, LIMIT_MS, &err))
        return give_up(&err);
    ns[4] = samples_now_ns();
    if (tenrec_shutdown(w, TENREC_GRACEFUL, LIMIT_MS, &err))
        return give_up(&err);
    printf("{\"init\": %.3f, \"connect\": %.3f, \"shutdown\": %.3f}\n",
           (double)(ns[1] - ns[0]) / 1e6, (double)(ns[3] - ns[2]) / 1e6,
           (double)(samples_now_ns() - ns[4]) / 1e6);
    tenrec_worker_drop(w);
    return 0;
}
