/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper.h"

#include "core/base/clock.h"

#include <inttypes.h>
#include <signal.h>
#include <tenrec/plugin.h>

/* The time of the next renewal: a third of the lease leaves time for two retries. */
static uint64_t keeper_next(const struct keeper *k, bool worked)
{
    uint64_t ms = worked ? k->lease_ms / 3 : k->lease_ms / 10;

    return clock_deadline_ms(ms ? ms : 1);
}

/* Logs the first of several failures. */
static bool keeper_renew(struct keeper *k, bool worked)
{
    tenrec_error err;
    const tenrec_status st = k->renew(k->arg, &err);

    if (st != TENREC_OK && worked)
        k->self->host->log(k->self, TENREC_LOG_WARN, "%s: cannot renew the lease: %s", k->name,
                           err.text);
    return st == TENREC_OK;
}

static void *keeper_run(void *arg)
{
    struct keeper *k = arg;
    bool worked = true;

    pthread_mutex_lock(&k->lock);
    for (;;) {
        const uint64_t next_ns = keeper_next(k, worked);
        while (!k->closing && clock_cond_wait(&k->wake, &k->lock, next_ns))
            ;
        if (k->closing)
            break;
        pthread_mutex_unlock(&k->lock);
        worked = keeper_renew(k, worked);
        pthread_mutex_lock(&k->lock);
    }
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

tenrec_status keeper_start(struct keeper *k, uint64_t wanted_ms, const char *thread,
                           tenrec_error *err)
{
    pthread_attr_t attr;
    sigset_t all, before;
    int failed;

    if (k->lease_ms != wanted_ms)
        k->self->host->log(k->self, TENREC_LOG_WARN,
                           "%s exists with a lease of %" PRIu64 " ms (0: none), which "
                           "overrides the option 'lease' of %" PRIu64 " ms",
                           k->name, k->lease_ms, wanted_ms);
    if (!k->lease_ms)
        return TENREC_OK;
    pthread_mutex_init(&k->lock, NULL);
    clock_cond_init(&k->wake);
    /* Signals belong to the program's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, TENREC_THREAD_STACK);
    failed = pthread_create(&k->thread, &attr, keeper_run, k);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    k->running = !failed;
    if (!failed) {
        pthread_setname_np(k->thread, thread);
        return TENREC_OK;
    }
    pthread_cond_destroy(&k->wake);
    pthread_mutex_destroy(&k->lock);
    return tenrec_fail_errno(err, TENREC_EOS, failed, "cannot start a thread for the lease");
}

void keeper_stop(struct keeper *k)
{
    if (!k->running)
        return;
    pthread_mutex_lock(&k->lock);
    k->closing = true;
    pthread_cond_signal(&k->wake);
    pthread_mutex_unlock(&k->lock);
    pthread_join(k->thread, NULL);
    k->running = false;
    pthread_cond_destroy(&k->wake);
    pthread_mutex_destroy(&k->lock);
}
