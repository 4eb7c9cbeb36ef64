/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - a group of many workers in a few processes, over a real store and real connections,
 * started by bench/simulate:
 *
 *     simulate WORKERS PROCESSES LIMIT_MS [elastic]
 *
 * Each worker has a thread. The parent serves the store and leads all threads through the steps: a
 * step begins for all at once, and its time ends with that of the last worker. A dynamic group has
 * one worker more, the guest, in a process of its own: it joins, leaves, joins again and is killed
 * while the others watch. */
#include "../pair.h"
#include "group/store/host_copy.h"
#include "samples.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tenrec/store.h>
#include <tenrec/tenrec.h>
#include <unistd.h>

enum { STACK = 256 << 10, BARRIERS = 10, PROCESSES_MAX = 256 };
enum { MAKE, INIT, KNOW, FIRST, BARRIER, GATHER, JOINS, LEAVES, AGAIN, DIES, SHUTDOWN, STEPS };

/* Hundreds of workers on two processors answer late. */
#define HEARTBEAT "5s"

struct stage {
    pthread_barrier_t meet; /* all threads of all processes, and the parent */
    pthread_barrier_t rest; /* without the guest, which is killed */
    int n, processes;
    bool elastic;
    int64_t limit_ms;
    char port[16];
    _Atomic uint64_t barrier_ns[BARRIERS]; /* as rank 0 has measured them */
    /* Of each step: the first worker began, the last has ended. */
    _Atomic uint64_t begin_ns[STEPS], end_ns[STEPS];
    _Atomic uint64_t version; /* of the view before the guest comes */
};

struct actor {
    struct stage *stage;
    pthread_t thread;
    int rank;
    struct tenrec_worker *worker;
};

static void meet(struct stage *s, bool guest)
{
    pthread_barrier_wait(guest ? &s->meet : &s->rest);
}

static bool actor_is_guest(const struct actor *a)
{
    return a->rank == a->stage->n;
}

static tenrec_status actor_make(struct actor *a, tenrec_error *err)
{
    struct tenrec_config *c;
    char text[512], world[32] = "";
    tenrec_status st;

    if (!a->stage->elastic)
        snprintf(world, sizeof world, "world_size: %d,", a->stage->n);
    setenv("MASTER_PORT", a->stage->port, 1);
    snprintf(text, sizeof text,
             "worker: { name: \"w{rank}\", rank: %d, %s init_timeout: %lldms, heartbeat: %s }\n"
             "security: { mode: none }\n"
             "backend: tensorpipe\n"
             "backends:\n"
             "  tensorpipe: { plugin: tensorpipe, options: { transports: [uv], channels: [basic], "
             "progress: sleep } }\n",
             a->rank, world, (long long)a->stage->limit_ms, HEARTBEAT);
    st = tenrec_config_parse(text, "simulate", &c, err);
    if (st != TENREC_OK)
        return st;
    st = tenrec_worker_new(c, &a->worker, err);
    tenrec_config_drop(c);
    return st;
}

static tenrec_status actor_init(struct actor *a, tenrec_error *err)
{
    return tenrec_init_rpc(a->worker, err);
}

static tenrec_status actor_barrier(struct actor *a, tenrec_error *err)
{
    return tenrec_worker_barrier(a->worker, NULL, 0, a->stage->limit_ms, err);
}

static tenrec_status actor_barriers(struct actor *a, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (int i = 0; i < BARRIERS && st == TENREC_OK; i++) {
        const uint64_t begin = samples_now_ns();

        st = actor_barrier(a, err);
        if (a->rank == 0)
            atomic_store(&a->stage->barrier_ns[i], samples_now_ns() - begin);
    }
    return st;
}

static tenrec_status actor_gather(struct actor *a, tenrec_error *err)
{
    struct tenrec_value mine = tenrec_value_int(a->rank), *all;
    tenrec_status st =
        tenrec_worker_all_gather(a->worker, &mine, NULL, 0, a->stage->limit_ms, &all, err);

    if (st == TENREC_OK)
        tenrec_value_drop(all);
    return st;
}

static tenrec_status actor_shutdown(struct actor *a, tenrec_error *err)
{
    return tenrec_shutdown(a->worker, TENREC_GRACEFUL, a->stage->limit_ms, err);
}

/* ---- a dynamic group: all watch the guest ------------------------------------------ */

/* Waits until this worker knows all; worker 0 notes the version of the view. */
static tenrec_status actor_know(struct actor *a, tenrec_error *err)
{
    struct tenrec_group_view *v;
    tenrec_status st =
        tenrec_group_wait_members(a->worker, (size_t)a->stage->n, a->stage->limit_ms, err);

    if (st != TENREC_OK || a->rank != 0)
        return st;
    st = tenrec_group_view_get(a->worker, &v, err);
    if (st != TENREC_OK)
        return st;
    atomic_store(&a->stage->version, v->version);
    tenrec_group_view_drop(v);
    return st;
}

static tenrec_status actor_see(struct actor *a, int changes, tenrec_error *err)
{
    return tenrec_group_wait_version(a->worker, atomic_load(&a->stage->version) + (uint64_t)changes,
                                     a->stage->limit_ms, err);
}

static tenrec_status actor_see_joined(struct actor *a, tenrec_error *err)
{
    return actor_is_guest(a) ? actor_init(a, err) : actor_see(a, 1, err);
}

static tenrec_status actor_see_left(struct actor *a, tenrec_error *err)
{
    return actor_is_guest(a) ? actor_shutdown(a, err) : actor_see(a, 2, err);
}

static tenrec_status actor_see_joined_again(struct actor *a, tenrec_error *err)
{
    return actor_is_guest(a) ? actor_init(a, err) : actor_see(a, 3, err);
}

static tenrec_status actor_see_died(struct actor *a, tenrec_error *err)
{
    return actor_see(a, 4, err);
}

static const struct {
    const char *name;
    tenrec_status (*run)(struct actor *a, tenrec_error *err);
    bool elastic; /* of dynamic groups only */
    bool guest;   /* the guest takes part */
} steps[STEPS] = {
    [MAKE] = { "new", actor_make, false, true },
    [INIT] = { "init", actor_init, false, false },
    [KNOW] = { "knowing all", actor_know, true, false },
    [FIRST] = { "the first barrier", actor_barrier, false, false },
    [BARRIER] = { "a barrier", actor_barriers, false, false },
    [GATHER] = { "the gather", actor_gather, false, false },
    [JOINS] = { "seeing one join", actor_see_joined, true, true },
    [LEAVES] = { "seeing one leave", actor_see_left, true, true },
    [AGAIN] = { "seeing one join again", actor_see_joined_again, true, true },
    [DIES] = { "seeing one die", actor_see_died, true, false },
    [SHUTDOWN] = { "shutdown", actor_shutdown, false, false },
};

static bool step_is_in(int i, const struct stage *s)
{
    return s->elastic || !steps[i].elastic;
}

static void note_begin(struct stage *s, int step)
{
    uint64_t none = 0;

    atomic_compare_exchange_strong(&s->begin_ns[step], &none, samples_now_ns());
}

static void note_end(struct stage *s, int step)
{
    const uint64_t now_ns = samples_now_ns();
    uint64_t last_ns = atomic_load(&s->end_ns[step]);

    while (last_ns < now_ns && !atomic_compare_exchange_weak(&s->end_ns[step], &last_ns, now_ns))
        ;
}

static void *actor_main(void *arg)
{
    struct actor *a = arg;
    tenrec_error err;

    for (int i = 0; i < STEPS; i++) {
        if (!step_is_in(i, a->stage))
            continue;
        meet(a->stage, i <= DIES);
        note_begin(a->stage, i);
        if (actor_is_guest(a) && i == DIES)
            raise(SIGKILL);
        if ((!actor_is_guest(a) || steps[i].guest) && steps[i].run(a, &err) != TENREC_OK) {
            fprintf(stderr, "simulate: rank %d: %s: %s\n", a->rank, steps[i].name, err.text);
            _exit(1);
        }
        note_end(a->stage, i);
        meet(a->stage, i < DIES);
    }
    tenrec_worker_drop(a->worker);
    return NULL;
}

struct cast {
    struct stage *stage;
    int first, n; /* ranks */
};

static int cast_main(void *arg)
{
    const struct cast *c = arg;
    struct actor *a = calloc((size_t)c->n, sizeof *a);
    pthread_attr_t small;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    for (int i = 0; i < c->n; i++) {
        a[i] = (struct actor){ .stage = c->stage, .rank = c->first + i };
        if (pthread_create(&a[i].thread, &small, actor_main, &a[i]))
            pair_die("cannot start a thread for rank %d", a[i].rank);
    }
    for (int i = 0; i < c->n; i++)
        pthread_join(a[i].thread, NULL);
    pthread_attr_destroy(&small);
    free(a);
    return 0;
}

/* ---- the parent ------------------------------------------------------------------ */

static pid_t guest; /* 0: none */

static void on_child(int signal_number)
{
    int status;
    pid_t p;

    (void)signal_number;
    while ((p = waitpid(-1, &status, WNOHANG)) > 0)
        if (status != 0 && (p != guest || !WIFSIGNALED(status)))
            _exit(1); /* the other children die with this process */
}

static long rss_kib(const pid_t *p, int n)
{
    long all = 0;

    for (int i = 0; i < n; i++) {
        char path[64];
        long pages = 0;
        FILE *f;

        snprintf(path, sizeof path, "/proc/%d/statm", (int)p[i]);
        f = fopen(path, "r");
        if (f && fscanf(f, "%*d %ld", &pages) == 1)
            all += pages * (sysconf(_SC_PAGESIZE) / 1024);
        if (f)
            fclose(f);
    }
    return all;
}

/* The requests that the store's server has answered. */
static long long stage_requests(const struct stage *s)
{
    struct tenrec_store *store;
    char url[64];
    long long n = -1;
    void *text;
    size_t len;

    snprintf(url, sizeof url, "tcp://127.0.0.1:%s", s->port);
    if (tenrec_store_open(url, 1000, &store, NULL) != TENREC_OK)
        return n;
    if (tenrec_store_get(store, "tenrec.requests", 1000, &text, &len, NULL) == TENREC_OK) {
        n = atoll(text);
        free(text);
    }
    tenrec_store_close(store);
    return n;
}

static double barrier_median_s(const struct stage *s)
{
    struct samples t;
    double us;

    if (samples_init(&t, BARRIERS))
        pair_die("no memory");
    for (int i = 0; i < BARRIERS; i++)
        samples_add(&t, atomic_load(&s->barrier_ns[i]));
    us = samples_us(&t, 0.5);
    samples_finish(&t);
    return us / 1e6;
}

static void stage_lead(struct stage *s, const pid_t *p)
{
    double took_s[STEPS] = { 0 };
    long long requests[STEPS] = { 0 };
    long before = rss_kib(p, s->processes), after = 0;

    for (int i = 0; i < STEPS; i++) {
        if (!step_is_in(i, s))
            continue;
        meet(s, i <= DIES);
        meet(s, i < DIES);
        took_s[i] = (double)(atomic_load(&s->end_ns[i]) - atomic_load(&s->begin_ns[i])) / 1e9;
        requests[i] = stage_requests(s);
        if (i == GATHER)
            after = rss_kib(p, s->processes);
    }
    printf("{\"workers\": %d, \"init_s\": %.4f, \"first_barrier_s\": %.4f, \"barrier_s\": %.5f, "
           "\"gather_s\": %.4f, ",
           s->n, took_s[INIT] + took_s[KNOW], took_s[FIRST], barrier_median_s(s), took_s[GATHER]);
    if (s->elastic)
        printf("\"joins_s\": %.4f, \"leaves_s\": %.4f, \"joins_again_s\": %.4f, \"dies_s\": %.4f, ",
               took_s[JOINS], took_s[LEAVES], took_s[AGAIN], took_s[DIES]);
    printf("\"shutdown_s\": %.4f, \"requests\": %lld, \"requests_of_init\": %lld, "
           "\"rss_kib_per_worker\": %ld}\n",
           took_s[SHUTDOWN], requests[SHUTDOWN], requests[INIT], (after - before) / s->n);
}

static void stage_open(struct stage *s, struct tenrec_store_server **ret)
{
    tenrec_error err;
    uint16_t port;

    if (tenrec_store_server_new("127.0.0.1", 0, ret, &port, &err)) {
        fprintf(stderr, "simulate: %s\n", err.text);
        exit(1);
    }
    snprintf(s->port, sizeof s->port, "%u", (unsigned)port);
}

static void stage_init(struct stage *s)
{
    pthread_barrierattr_t shared;
    tenrec_error err;
    char host[16];
    int host_fd;

    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    if (pthread_barrier_init(&s->meet, &shared, (unsigned)(s->n + s->elastic) + 1) ||
        pthread_barrier_init(&s->rest, &shared, (unsigned)s->n + 1))
        pair_die("cannot make a barrier of %d threads", s->n + 1);
    /* As under a launcher, which serves the store, and has all workers share what they read. */
    if (host_copy_new(&host_fd, &err) != TENREC_OK)
        pair_die("%s", err.text);
    snprintf(host, sizeof host, "%d", host_fd);
    setenv(HOST_COPY_VARIABLE, host, 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    setenv("TENREC_SECURITY__MODE", "none", 1);
    unsetenv("BENCH_CPUS");
    signal(SIGCHLD, on_child);
}

static bool stage_read(struct stage *s, int argc, char **argv)
{
    if (argc < 4 || argc > 5)
        return false;
    s->n = atoi(argv[1]);
    s->processes = atoi(argv[2]);
    s->limit_ms = atoll(argv[3]);
    s->elastic = argc == 5;
    return s->processes >= 1 && s->processes < PROCESSES_MAX && s->processes <= s->n &&
           s->limit_ms >= 1 && (argc == 4 || strcmp(argv[4], "elastic") == 0);
}

int main(int argc, char **argv)
{
    struct stage *s = pair_memory(sizeof *s, true);
    struct tenrec_store_server *server;
    struct cast cast[PROCESSES_MAX];
    pid_t p[PROCESSES_MAX];

    if (!stage_read(s, argc, argv)) {
        fputs("usage: simulate WORKERS PROCESSES LIMIT_MS [elastic]\n", stderr);
        return 2;
    }
    stage_init(s);
    for (int i = 0; i < s->processes; i++) {
        const int first = i * s->n / s->processes;

        cast[i] = (struct cast){ s, first, (i + 1) * s->n / s->processes - first };
        p[i] = pair_fork(cast_main, &cast[i]);
    }
    if (s->elastic) {
        cast[s->processes] = (struct cast){ s, s->n, 1 };
        guest = pair_fork(cast_main, &cast[s->processes]);
    }
    stage_open(s, &server);
    stage_lead(s, p);
    signal(SIGCHLD, SIG_DFL);
    while (wait(NULL) > 0)
        ;
    tenrec_store_server_drop(server);
    return 0;
}
