/* SPDX-License-Identifier: Apache-2.0 */
/* grow.c - one of N workers of a group, started by bench/grow: connects to all others, and
 * shuts down together with them. Prints both durations. */
#include "samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/tenrec.h>
#include <time.h>

enum { LIMIT_MS = 120000 };

static int give_up(const tenrec_error *err)
{
    fprintf(stderr, "grow: %s\n", err->text);
    return 1;
}

/* Calls all other workers at once. */
static tenrec_status call_all(struct tenrec_worker *w, tenrec_error *err)
{
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = LIMIT_MS };
    struct tenrec_worker_info me, *info;
    struct tenrec_future **f;
    tenrec_status st = tenrec_get_worker_info(w, NULL, &me, err);
    size_t n = 0, made = 0;

    tenrec_worker_get_infos(w, NULL, 0, &n, NULL);
    info = calloc(n, sizeof *info);
    f = calloc(n, sizeof(struct tenrec_future *));
    if (!info || !f)
        abort();
    tenrec_worker_get_infos(w, info, n, &n, NULL);
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

struct moment {
    double wall_ms, cpu_ms; /* of this process */
};

static struct moment now(void)
{
    struct timespec cpu;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return (struct moment){ (double)samples_now_ns() / 1e6,
                            (double)cpu.tv_sec * 1e3 + (double)cpu.tv_nsec / 1e6 };
}

static void print_phase(const char *name, struct moment from, struct moment to)
{
    printf("\"%s\": %.3f, \"%s_cpu\": %.3f", name, to.wall_ms - from.wall_ms, name,
           to.cpu_ms - from.cpu_ms);
}

int main(void)
{
    struct tenrec_worker *w = NULL;
    struct moment at[6];
    tenrec_error err;

    at[0] = now();
    if (tenrec_worker_new(NULL, &w, &err) || tenrec_init_rpc(w, &err))
        return give_up(&err);
    at[1] = now();
    if (tenrec_worker_barrier(w, NULL, 0, LIMIT_MS, &err))
        return give_up(&err);
    at[2] = now();
    if (call_all(w, &err))
        return give_up(&err);
    at[3] = now();
    if (tenrec_worker_barrier(w, NULL, 0, LIMIT_MS, &err))
        return give_up(&err);
    at[4] = now();
    if (tenrec_shutdown(w, TENREC_GRACEFUL, LIMIT_MS, &err))
        return give_up(&err);
    at[5] = now();
    printf("{");
    print_phase("init", at[0], at[1]);
    printf(", ");
    print_phase("connect", at[2], at[3]);
    printf(", ");
    print_phase("shutdown", at[4], at[5]);
    printf("}\n");
    tenrec_worker_drop(w);
    return 0;
}
