/* SPDX-License-Identifier: Apache-2.0 */
/* crowd_actor.c - some workers of a crowd (crowd.py) in one process, each with a thread.
 *
 *     crowd_actor FIRST N LIFE
 *
 * The workers have the ranks FIRST to FIRST + N - 1 and join the group that the environment names;
 * then it prints "ok". Orders on stdin, one per line:
 *
 *     views     "view NAME VERSION MEMBER,..." of each worker, and "ok"
 *     calls     each worker calls some others: "ok MADE", or "fail TEXT" for a wrong answer
 *     leave     all leave in good order: "ok"; ends
 *
 * An order that fails prints "fail TEXT", and the process ends. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/tenrec.h>

enum { WORKERS_MAX = 64, CALLS = 4, LIMIT_MS = 60000, CALL_MS = 5000, STACK = 512 << 10 };

struct actor {
    pthread_t thread;
    int rank;
    char name[32];
    unsigned seed;
    struct tenrec_worker *worker;
    const char *failed; /* what it was at */
    tenrec_error err;
};

static struct actor actor[WORKERS_MAX];
static int n_actors;
static _Atomic long n_made;

/* ---- what one worker does, on its thread ---------------------------------------------- */

static tenrec_status add(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_value sum;
    int64_t a, b;

    (void)arg;
    if (tenrec_call_get_args(call, err, "ii", &a, &b) != TENREC_OK)
        return err->code;
    sum = tenrec_value_int(a + b);
    return tenrec_call_return(call, &sum, err);
}

static void *actor_join(void *arg)
{
    struct actor *a = arg;
    struct tenrec_config *c;
    char text[512];

    snprintf(text, sizeof text,
             "worker: { name: \"%s\", rank: %d, heartbeat: 500ms, heartbeat_misses: 10, "
             "init_timeout: 60s }\n"
             "backend: tensorpipe\n"
             "backends: { tensorpipe: { plugin: tensorpipe, options: { transports: [uv], channels: "
             "[basic], progress: "
             "sleep } } }\n",
             a->name, a->rank);
    a->failed = "join";
    if (tenrec_config_parse(text, "crowd", &c, &a->err) != TENREC_OK)
        return NULL;
    if (tenrec_worker_new(c, &a->worker, &a->err) == TENREC_OK &&
        tenrec_worker_register_function(a->worker, "add", add, NULL, TENREC_INLINE, &a->err) ==
            TENREC_OK &&
        tenrec_init_rpc(a->worker, &a->err) == TENREC_OK)
        a->failed = NULL;
    tenrec_config_drop(c);
    return NULL;
}

/* A call may miss a worker that is killed, stopped or leaves. Its answer is right, or there is
 * none. */
static void *actor_call(void *arg)
{
    struct actor *a = arg;
    struct tenrec_group_view *v;

    if (tenrec_group_view_get(a->worker, &v, &a->err) != TENREC_OK) {
        a->failed = "view";
        return NULL;
    }
    for (int i = 0; i < CALLS && !a->failed; i++) {
        const char *to = v->member[(unsigned)rand_r(&a->seed) % v->n].name;
        int64_t sum;

        if (tenrec_call(a->worker, to, "add", NULL, "ii>i", a->rank, i, &sum) != TENREC_OK)
            continue;
        atomic_fetch_add(&n_made, 1);
        if (sum != a->rank + i)
            a->failed = "wrong answer";
    }
    tenrec_group_view_drop(v);
    return NULL;
}

static void *actor_leave(void *arg)
{
    struct actor *a = arg;

    if (tenrec_shutdown(a->worker, TENREC_GRACEFUL, LIMIT_MS, &a->err) != TENREC_OK)
        a->failed = "leave";
    tenrec_worker_drop(a->worker);
    return NULL;
}

/* ---- all of them ------------------------------------------------------------------------- */

/* Each does it on its thread. Returns false, and says why, when one fails. */
static bool all(void *(*run)(void *arg))
{
    pthread_attr_t small;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    for (int i = 0; i < n_actors; i++)
        if (pthread_create(&actor[i].thread, &small, run, &actor[i]))
            exit(3);
    pthread_attr_destroy(&small);
    for (int i = 0; i < n_actors; i++)
        pthread_join(actor[i].thread, NULL);
    for (int i = 0; i < n_actors; i++)
        if (actor[i].failed) {
            printf("fail %s: %s: %s\n", actor[i].name, actor[i].failed, actor[i].err.text);
            return false;
        }
    return true;
}

static bool tell_view(struct actor *a)
{
    struct tenrec_group_view *v;

    if (tenrec_group_view_get(a->worker, &v, &a->err) != TENREC_OK) {
        printf("fail %s: view: %s\n", a->name, a->err.text);
        return false;
    }
    printf("view %s %llu ", a->name, (unsigned long long)v->version);
    for (uint32_t i = 0; i < v->n; i++)
        printf("%s%s", i ? "," : "", v->member[i].name);
    puts("");
    tenrec_group_view_drop(v);
    return true;
}

static bool obey(const char *order)
{
    bool well = true;

    if (strcmp(order, "views\n") == 0) {
        for (int i = 0; i < n_actors && well; i++)
            well = tell_view(&actor[i]);
    } else if (strcmp(order, "calls\n") == 0) {
        well = all(actor_call);
    } else {
        well = strcmp(order, "leave\n") == 0 && all(actor_leave);
    }
    if (well)
        printf("ok %ld\n", atomic_load(&n_made));
    fflush(stdout);
    return well;
}

int main(int argc, char **argv)
{
    char line[64];
    bool well, left = false;

    if (argc != 4 || atoi(argv[2]) < 1 || atoi(argv[2]) > WORKERS_MAX) {
        fputs("usage: crowd_actor FIRST N LIFE\n", stderr);
        return 2;
    }
    n_actors = atoi(argv[2]);
    for (int i = 0; i < n_actors; i++) {
        struct actor *a = &actor[i];

        a->rank = atoi(argv[1]) + i;
        a->seed = (unsigned)(a->rank * 1000 + atoi(argv[3]));
        snprintf(a->name, sizeof a->name, "w%d-%s", a->rank, argv[3]);
    }
    well = all(actor_join);
    if (well)
        puts("ok");
    fflush(stdout);
    while (well && !left && fgets(line, sizeof line, stdin)) {
        left = strcmp(line, "leave\n") == 0;
        well = obey(line);
    }
    /* Without an order to leave the sender of the orders is gone. */
    return well && left ? 0 : 4;
}
