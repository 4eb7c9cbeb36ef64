/* SPDX-License-Identifier: Apache-2.0 */
#include "top/feed.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

static void feed_publish(struct feed *f, struct sample *fresh)
{
    pthread_mutex_lock(&f->lock);
    sample_finish(&f->before);
    f->before = f->now;
    f->has_before = f->has_now;
    f->now = *fresh;
    f->has_now = true;
    f->version++;
    pthread_mutex_unlock(&f->lock);
}

/* Turns durations on where they are off. */
static void feed_turn_on(struct feed *f, const struct sample *at)
{
    char note[256] = "all workers count durations already";
    tenrec_error err;
    int on = 0, refused = 0;

    for (size_t i = 0; i < at->n; i++) {
        const struct sample_worker *w = &at->worker[i];

        if (!w->reading.answered || w->reading.timed)
            continue;
        if (sampler_time(f->sampler, w->name, &err) == TENREC_OK)
            on++;
        else if (!refused++)
            snprintf(note, sizeof note, "'%.64s' keeps durations off: %.150s", w->name, err.text);
    }
    if (on && !refused)
        snprintf(note, sizeof note, "durations of %d worker%s are counted now", on,
                 on == 1 ? "" : "s");
    pthread_mutex_lock(&f->lock);
    memcpy(f->note, note, sizeof f->note);
    f->version++;
    pthread_mutex_unlock(&f->lock);
}

/* Waits for the next sample. Returns false to stop. */
static bool feed_wait(struct feed *f, uint64_t until_ns, bool *ret_time)
{
    bool go_on;

    pthread_mutex_lock(&f->lock);
    while (!f->stop && !f->time_asked && !clock_passed(until_ns))
        clock_cond_wait(&f->changed, &f->lock, until_ns);
    *ret_time = f->time_asked;
    f->time_asked = false;
    go_on = !f->stop;
    pthread_mutex_unlock(&f->lock);
    return go_on;
}

static void *feed_main(void *arg)
{
    struct feed *f = arg;
    struct sample fresh;
    tenrec_error err;
    tenrec_status st;
    bool time_asked = false, go_on = true;

    while (go_on) {
        uint64_t next = clock_deadline_ms(f->sampler->interval_ms);

        st = sampler_take(f->sampler, &fresh, &err);
        if (st != TENREC_OK) {
            pthread_mutex_lock(&f->lock);
            f->failed = st;
            pthread_mutex_unlock(&f->lock);
            return NULL;
        }
        feed_publish(f, &fresh); /* only this thread replaces it: `fresh` may be read below */
        go_on = feed_wait(f, next, &time_asked);
        if (go_on && time_asked)
            feed_turn_on(f, &fresh);
    }
    return NULL;
}

tenrec_status feed_start(struct feed *f, struct sampler *s, tenrec_error *err)
{
    int code;

    *f = (struct feed){ .sampler = s };
    pthread_mutex_init(&f->lock, NULL);
    clock_cond_init(&f->changed);
    code = pthread_create(&f->thread, NULL, feed_main, f);
    return code ? tenrec_fail(err, TENREC_EOS, "cannot start a thread: %s", strerror(code))
                : TENREC_OK;
}

void feed_time(struct feed *f)
{
    pthread_mutex_lock(&f->lock);
    f->time_asked = true;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

bool feed_stop(struct feed *f, int ms)
{
    struct timespec until;

    pthread_mutex_lock(&f->lock);
    f->stop = true;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_timedjoin_np(f->thread, NULL, &until))
        return false;
    sample_finish(&f->before);
    sample_finish(&f->now);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    return true;
}
