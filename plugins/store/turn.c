/* SPDX-License-Identifier: Apache-2.0 */
#include "turn.h"

#include "core/base/clock.h"

void turn_init(struct turn *t)
{
    t->busy = false;
    pthread_mutex_init(&t->lock, NULL);
    clock_cond_init(&t->free);
}

void turn_finish(struct turn *t)
{
    pthread_cond_destroy(&t->free);
    pthread_mutex_destroy(&t->lock);
}

tenrec_status turn_take(struct turn *t, uint64_t deadline_ns, tenrec_error *err)
{
    bool taken;

    pthread_mutex_lock(&t->lock);
    while (t->busy && clock_cond_wait(&t->free, &t->lock, deadline_ns))
        ;
    taken = !t->busy;
    t->busy = true; /* by this thread or another */
    pthread_mutex_unlock(&t->lock);
    return taken ? TENREC_OK
                 : tenrec_fail(err, TENREC_ETIMEDOUT,
                               "other calls of this process keep the server busy");
}

void turn_give(struct turn *t)
{
    pthread_mutex_lock(&t->lock);
    t->busy = false;
    pthread_cond_signal(&t->free);
    pthread_mutex_unlock(&t->lock);
}
