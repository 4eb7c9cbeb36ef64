/* SPDX-License-Identifier: Apache-2.0 */
/* scale.c - one of N workers of a group, started by bench/scale: ranks from 1 on serve, on as many
 * threads as the configuration says, and CALLERS threads of rank 0 call them in turn. Counts the
 * mutexes of each process that a thread found locked, and where.
 *
 *     scale CALLERS MILLISECONDS */
#include "samples.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/tenrec.h>

enum { LIMIT_MS = 60000, CALLERS_MAX = 64, PLACES = 64, SHOWN = 3 };

/* ---- locked mutexes ------------------------------------------------------------------ */

static struct place {
    _Atomic(void *) at; /* the caller of pthread_mutex_lock; NULL: free */
    atomic_ulong n;
} places[PLACES];
static atomic_bool counting;

static void place_count(void *at)
{
    for (int i = 0; i < PLACES; i++) {
        void *other = NULL;
        if (atomic_compare_exchange_strong(&places[i].at, &other, at) || other == at) {
            atomic_fetch_add(&places[i].n, 1);
            return;
        }
    }
}

/* In front of the C library's, also for the libraries: the program exports it. */
int pthread_mutex_lock(pthread_mutex_t *m)
{
    int (*next)(pthread_mutex_t *);
    void *found;

    if (pthread_mutex_trylock(m) == 0)
        return 0;
    if (atomic_load_explicit(&counting, memory_order_relaxed))
        place_count(__builtin_return_address(0));
    found = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    memcpy(&next, &found, sizeof next); /* ISO C has no such cast */
    return next(m);
}

static int place_compare(const void *a, const void *b)
{
    const unsigned long x = atomic_load(&((struct place *)(uintptr_t)a)->n);
    const unsigned long y = atomic_load(&((struct place *)(uintptr_t)b)->n);

    return (x < y) - (x > y);
}

/* As [["file", "0xoffset", times], ...], and the sum. */
static void places_print(void)
{
    unsigned long all = 0;

    atomic_store(&counting, false);
    qsort(places, PLACES, sizeof *places, place_compare);
    printf("\"locked\": [");
    for (int i = 0; i < PLACES; i++) {
        const unsigned long n = atomic_load(&places[i].n);
        void *at = atomic_load(&places[i].at);
        Dl_info info;
        all += n;
        if (n && i < SHOWN && dladdr(at, &info))
            printf("%s[\"%s\", \"0x%zx\", %lu]", i ? ", " : "", info.dli_fname,
                   (size_t)((char *)at - (char *)info.dli_fbase), n);
    }
    printf("], \"n_locked\": %lu", all);
}

/* ---- the group ------------------------------------------------------------------------ */

static struct {
    struct tenrec_worker *w;
    int servers;
    atomic_bool stop;
    atomic_ulong calls;
} run;

static void must(tenrec_status st, const tenrec_error *err)
{
    if (st == TENREC_OK)
        return;
    fprintf(stderr, "scale: %s: %s\n", tenrec_status_name(st), err->text);
    exit(1);
}

static tenrec_status nothing(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    (void)arg;
    return tenrec_call_return(call, NULL, err);
}

/* The caller number *arg begins with another server than the others. */
static void *caller(void *arg)
{
    int to = *(int *)arg;
    char name[TENREC_NAME_MAX + 1];
    tenrec_error err;

    while (!atomic_load_explicit(&run.stop, memory_order_relaxed)) {
        snprintf(name, sizeof name, "worker%d", 1 + to++ % run.servers);
        must(tenrec_rpc_sync(run.w, name, "nothing", NULL, 0, NULL, NULL, &err), &err);
        atomic_fetch_add_explicit(&run.calls, 1, memory_order_relaxed);
    }
    return NULL;
}

static double call_for(int callers, int ms)
{
    const struct timespec time = { ms / 1000, ms % 1000 * 1000000L };
    pthread_t thread[CALLERS_MAX];
    int number[CALLERS_MAX];
    uint64_t since;

    atomic_store(&run.stop, false);
    atomic_store(&run.calls, 0);
    since = samples_now_ns();
    for (int i = 0; i < callers; i++) {
        number[i] = i;
        if (pthread_create(&thread[i], NULL, caller, &number[i]))
            exit(1);
    }
    nanosleep(&time, NULL);
    atomic_store(&run.stop, true);
    for (int i = 0; i < callers; i++)
        pthread_join(thread[i], NULL);
    return (double)atomic_load(&run.calls) * 1e9 / (double)(samples_now_ns() - since);
}

int main(int argc, char **argv)
{
    const int callers = argc == 3 ? atoi(argv[1]) : 0;
    struct tenrec_worker_info me;
    double rate = 0;
    tenrec_error err;

    if (callers < 1 || callers > CALLERS_MAX)
        return 2;
    must(tenrec_worker_new(NULL, &run.w, &err), &err);
    must(tenrec_worker_register_function(run.w, "nothing", nothing, NULL, 0, &err), &err);
    must(tenrec_init_rpc(run.w, &err), &err);
    must(tenrec_get_worker_info(run.w, NULL, &me, &err), &err);
    run.servers = atoi(getenv("WORLD_SIZE")) - 1;
    must(tenrec_worker_barrier(run.w, NULL, 0, LIMIT_MS, &err), &err);
    if (me.id == 0)
        call_for(callers, 100); /* makes connections and threads */
    must(tenrec_worker_barrier(run.w, NULL, 0, LIMIT_MS, &err), &err);
    atomic_store(&counting, true);
    if (me.id == 0)
        rate = call_for(callers, atoi(argv[2]));
    must(tenrec_worker_barrier(run.w, NULL, 0, LIMIT_MS, &err), &err);
    printf("{\"rank\": %d, \"calls_per_s\": %.0f, ", me.id, rate);
    places_print();
    printf("}\n");
    fflush(stdout);
    must(tenrec_shutdown(run.w, TENREC_GRACEFUL, LIMIT_MS, &err), &err);
    tenrec_worker_drop(run.w);
    return 0;
}
