/* SPDX-License-Identifier: Apache-2.0 */
/* caller.c - threads that have a job until they are stopped, and pause in between. */
#include "caller.h"

enum { PAUSE_MS = 20 };

/* xorshift64*. */
uint32_t draw(struct caller *c, uint32_t below)
{
    c->random ^= c->random >> 12;
    c->random ^= c->random << 25;
    c->random ^= c->random >> 27;
    return (uint32_t)((c->random * UINT64_C(0x2545f4914f6cdd1d)) >> 32) % below;
}

/* Waits while paused, and a moment between calls. Returns false if the thread has to end. */
static bool go_on(struct caller *c, bool rest)
{
    struct timespec until;
    bool stop;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += PAUSE_MS * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&c->lock);
    if (rest && !c->stop && !c->paused)
        pthread_cond_timedwait(&c->cond, &c->lock, &until);
    while (c->paused && !c->stop) {
        if (c->job->rest && !c->idle) {
            pthread_mutex_unlock(&c->lock);
            c->job->rest(c);
            pthread_mutex_lock(&c->lock);
        }
        c->idle = true;
        pthread_cond_broadcast(&c->cond);
        pthread_cond_wait(&c->cond, &c->lock);
    }
    c->idle = false;
    stop = c->stop;
    pthread_mutex_unlock(&c->lock);
    return !stop;
}

static void *run(void *arg)
{
    struct caller *c = arg;
    bool rest = false;

    while (go_on(c, rest))
        rest = !c->job->work(c);
    if (c->job->rest)
        c->job->rest(c);
    return NULL;
}

struct caller *caller_start(struct tenrec_worker *w, const struct caller_job *job, uint64_t seed,
                            int64_t large)
{
    struct caller *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->worker = w;
    c->job = job;
    c->large = large;
    c->random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->cond, NULL);
    if (pthread_create(&c->thread, NULL, run, c) == 0)
        return c;
    free(c);
    return NULL;
}

static void tell(struct caller *c, bool paused, bool stop)
{
    pthread_mutex_lock(&c->lock);
    c->paused = paused;
    c->stop = stop;
    pthread_cond_broadcast(&c->cond);
    while (paused && !c->idle)
        pthread_cond_wait(&c->cond, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

void caller_pause(struct caller *c)
{
    tell(c, true, false);
}

void caller_resume(struct caller *c)
{
    tell(c, false, false);
}

void caller_stop(struct caller *c)
{
    tell(c, false, true);
    pthread_join(c->thread, NULL);
    pthread_cond_destroy(&c->cond);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
