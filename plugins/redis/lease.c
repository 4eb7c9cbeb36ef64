/* SPDX-License-Identifier: Apache-2.0 */
/* lease.c - renews the lease, so that no key expires while a process has the store open. */
#include "store.h"

#include <signal.h>

#define CALL_MS 200 /* short: closing the store waits for a renewal */

/* The time of the next renewal: a third of the lease leaves time for two retries. */
static uint64_t lease_next(const struct redis_store *s, bool worked)
{
    uint64_t ms = worked ? s->lease_ms / 3 : s->lease_ms / 10;

    return clock_deadline_ms(ms ? ms : 1);
}

static bool lease_renew(struct redis_store *s, bool worked)
{
    const struct call call = { .script = script_renew };
    redisReply *reply = NULL;
    tenrec_error err;
    tenrec_status st = redis_call(s, &call, clock_deadline_ms(CALL_MS), &reply, &err);

    freeReplyObject(st == TENREC_OK ? reply : NULL);
    if (st != TENREC_OK && worked)
        s->self->host->log(s->self, TENREC_LOG_WARN, "%s: cannot renew the lease: %s", s->name,
                           err.text);
    return st == TENREC_OK;
}

static void *lease_keep(void *arg)
{
    struct redis_store *s = arg;
    bool worked = true;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        const uint64_t next_ns = lease_next(s, worked);
        while (!s->closing && clock_cond_wait(&s->wake, &s->lock, next_ns))
            ;
        if (s->closing)
            break;
        pthread_mutex_unlock(&s->lock);
        worked = lease_renew(s, worked);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

tenrec_status lease_start(struct redis_store *s, tenrec_error *err)
{
    pthread_attr_t attr;
    sigset_t all, before;
    int failed;

    if (!s->lease_ms)
        return TENREC_OK;
    /* Signals belong to the program's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, TENREC_THREAD_STACK);
    failed = pthread_create(&s->keeper, &attr, lease_keep, s);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return tenrec_fail_errno(err, TENREC_EOS, failed, "cannot start a thread for the lease");
    pthread_setname_np(s->keeper, "tenrec-redis");
    s->has_keeper = true;
    return TENREC_OK;
}

void lease_stop(struct redis_store *s)
{
    if (!s->has_keeper)
        return;
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->keeper, NULL);
}
