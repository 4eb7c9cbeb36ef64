/* SPDX-License-Identifier: Apache-2.0 */
#include "two.h"
#include "../support/debug_info.h"

#include "count.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 64
#define TOLD 6

/* Of the callee; several threads may deliver. */
static _Atomic long answered_on[THREADS_MAX];
static atomic_int pool_answers;
static sem_t end;

static void note_thread(void)
{
    long tid = syscall(SYS_gettid);
    char name[16] = "";

    for (int i = 0; i < THREADS_MAX; i++) {
        long none = 0;

        if (atomic_load(&answered_on[i]) == tid)
            return;
        if (atomic_compare_exchange_strong(&answered_on[i], &none, tid))
            break;
    }
    prctl(PR_GET_NAME, name);
    if (!strncmp(name, "tenrec-pool", 11))
        atomic_fetch_add(&pool_answers, 1);
}

static tenrec_status on_call(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    static _Thread_local bool noted;

    (void)call;
    (void)arg;
    (void)err;
    if (!noted)
        note_thread();
    noted = true;
    return TENREC_OK;
}

struct two_usage two_own_usage(void)
{
    struct two_usage u = { 0 };
    struct rusage r;
    char line[128];
    FILE *f = fopen("/proc/self/status", "r");

    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "Threads:", 8))
            u.threads = strtol(line + 8, NULL, 10);
    if (f)
        fclose(f);
    getrusage(RUSAGE_SELF, &r);
    u.cpu_us = (int64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 + r.ru_utime.tv_usec +
               r.ru_stime.tv_usec;
    u.switches = r.ru_nvcsw;
    u.pid = getpid();
    return u;
}

/* Six numbers: of two_usage, of two_answers, the process. */
static tenrec_status on_tell(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct two_usage u = two_own_usage();
    struct tenrec_value item[TOLD], v;
    int64_t threads = 0;

    (void)arg;
    while (threads < THREADS_MAX && atomic_load(&answered_on[threads]))
        threads++;
    item[0] = tenrec_value_int(u.cpu_us);
    item[1] = tenrec_value_int(u.switches);
    item[2] = tenrec_value_int(u.threads);
    item[3] = tenrec_value_int(threads);
    item[4] = tenrec_value_int(atomic_load(&pool_answers));
    item[5] = tenrec_value_int(getpid());
    v = tenrec_value_array(item, TOLD);
    return tenrec_call_return(call, &v, err);
}

static tenrec_status on_end(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    (void)call;
    (void)arg;
    (void)err;
    sem_post(&end);
    return TENREC_OK;
}

static tenrec_status setup(struct tenrec_worker *w, int32_t rank, void *arg, tenrec_error *err)
{
    static const struct {
        const char *name;
        tenrec_function_fn *fn;
        uint32_t flags;
    } function[] = { { "call", on_call, TENREC_INLINE },
                     { "pooled", on_call, 0 },
                     { "tell", on_tell, TENREC_INLINE },
                     { "end", on_end, TENREC_INLINE } };
    tenrec_status st = TENREC_OK;

    (void)rank;
    (void)arg;
    for (size_t i = 0; !st && i < sizeof function / sizeof *function; i++)
        st = tenrec_worker_register_function(w, function[i].name, function[i].fn, NULL,
                                             function[i].flags, err);
    return st;
}

/* The callee rests, and takes no part in a shutdown yet. */
static tenrec_status await_end(tenrec_error *err)
{
    struct timespec at;

    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += tenrec_test_stretch_ms(30000) / 1000;
    while (sem_timedwait(&end, &at))
        if (errno == ETIMEDOUT)
            return tenrec_fail(err, TENREC_ETIMEDOUT, "the caller did not come to an end");
    return TENREC_OK;
}

static tenrec_status body(const struct tenrec_test *t, tenrec_error *err)
{
    const struct two *two = t->arg;
    tenrec_status st;

    count_role(t->rank);
    if (t->rank == 1)
        return await_end(err);
    st = two->work(t->worker, two->arg, err);
    return st ? st : tenrec_rpc_sync(t->worker, "worker1", "end", NULL, 0, NULL, NULL, err);
}

int two_run(const struct two *t, tenrec_error *err)
{
    char transports[64], progress[64], channels[64];
    const char *options[] = { transports, progress, t->channels ? channels : NULL, NULL };
    struct tenrec_test_options o = { .size = sizeof o,
                                     .mode = TENREC_TEST_PROCESSES,
                                     .world_size = 2,
                                     .backend = "tensorpipe",
                                     .backend_options = options,
                                     .setup = setup,
                                     .body = body,
                                     .arg = (void *)t };

    sem_init(&end, 0, 0); /* each process has its copy */
    snprintf(transports, sizeof transports, "transports=[%s]",
             !strcmp(t->transport, "shm") ? "shm, uv" : "uv");
    snprintf(progress, sizeof progress, "progress=%s", t->progress);
    snprintf(channels, sizeof channels, "channels=[%s]", t->channels ? t->channels : "");
    return tenrec_test_dist_init(&o, err);
}

bool two_over_tls(void)
{
    const char *mode = getenv("TENREC_TEST_SECURITY");

    return mode && (!strcmp(mode, "tls") || !strcmp(mode, "mtls"));
}

tenrec_status two_call(struct tenrec_worker *w, tenrec_error *err)
{
    return tenrec_rpc_sync(w, "worker1", "call", NULL, 0, NULL, NULL, err);
}

static tenrec_status ask(struct tenrec_worker *w, int64_t ret[TOLD], tenrec_error *err)
{
    struct tenrec_value *v;
    tenrec_status st = tenrec_rpc_sync(w, "worker1", "tell", NULL, 0, NULL, &v, err);

    if (st)
        return st;
    st = tenrec_value_unpack(v->u.array, v->n, err, "iiiiii", &ret[0], &ret[1], &ret[2], &ret[3],
                             &ret[4], &ret[5]);
    tenrec_value_drop(v);
    return st;
}

tenrec_status two_callee_usage(struct tenrec_worker *w, struct two_usage *ret, tenrec_error *err)
{
    int64_t n[TOLD];
    tenrec_status st = ask(w, n, err);

    if (!st)
        *ret = (struct two_usage){
            .cpu_us = n[0], .switches = n[1], .threads = n[2], .pid = (pid_t)n[5]
        };
    return st;
}

tenrec_status two_answered(struct tenrec_worker *w, struct two_answers *ret, tenrec_error *err)
{
    int64_t n[TOLD];
    tenrec_status st = ask(w, n, err);

    if (!st)
        *ret = (struct two_answers){ .threads = n[3], .on_pool = n[4] };
    return st;
}

struct found {
    char *name;
    size_t size;
};

static void on_key(void *arg, const char *key, const char *value)
{
    struct found *f = arg;

    if (!strcmp(key, "tensorpipe.peer.1.transport"))
        snprintf(f->name, f->size, "%s", value);
}

void two_transport(struct tenrec_worker *w, char *ret_name, size_t size)
{
    struct found f = { ret_name, size };

    *ret_name = '\0';
    debug_info_each(w, on_key, &f);
}
