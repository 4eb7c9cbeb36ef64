/* SPDX-License-Identifier: Apache-2.0 */
/* start.c - many workers that start at once. */
#include "modes.h"
#include "samples.h"
#include "side.h"

#include <stdatomic.h>
#include <stdlib.h>

struct child {
    struct side *side;
    int rank;
};

static int child_main(void *arg)
{
    const struct child *c = arg;
    struct side *s = c->side;
    struct tenrec_worker *w;
    tenrec_error err;

    /* Start all at once. */
    atomic_fetch_add(&s->ready, 1);
    while (atomic_load(&s->ready) <= s->world)
        side_pause_ms(1);
    s->begin_ns[c->rank] = samples_now_ns();
    w = side_worker(s, c->rank);
    if (tenrec_init_rpc(w, &err))
        side_give_up(&err);
    s->end_ns[c->rank] = samples_now_ns();
    side_end_worker(w);
    return 0;
}

static bool all_ready(const struct side *s)
{
    for (int ms = 0; atomic_load(&s->ready) < s->world; ms++) {
        if (ms == 30000)
            return false;
        side_pause_ms(1);
    }
    side_pause_ms(100); /* until all wait */
    return true;
}

int start_main(const char *via)
{
    struct side *s = side_new(via, "adaptive", SIDE_WORLD_MAX);
    struct child c[SIDE_WORLD_MAX];
    pid_t p[SIDE_WORLD_MAX];
    uint64_t first = UINT64_MAX, last = 0;
    bool ok = true;

    unsetenv("BENCH_CPUS");
    for (int i = 0; i < s->world; i++) {
        c[i] = (struct child){ s, i };
        p[i] = pair_fork(child_main, &c[i]);
    }
    if (!all_ready(s)) {
        fprintf(stderr, "bench: not all workers started\n");
        return 1;
    }
    atomic_fetch_add(&s->ready, 1);
    for (int i = 0; i < s->world; i++)
        ok = pair_join(p[i]) && ok;
    side_drop(s);
    if (!ok)
        return 1;
    for (int i = 0; i < s->world; i++) {
        first = s->begin_ns[i] < first ? s->begin_ns[i] : first;
        last = s->end_ns[i] > last ? s->end_ns[i] : last;
    }
    printf("{\"peer\": \"tenrec\", \"via\": \"%s\", \"mode\": \"init\", \"world\": %d, "
           "\"init_s\": %.6f}\n",
           via, s->world, (double)(last - first) / 1e9);
    return 0;
}
