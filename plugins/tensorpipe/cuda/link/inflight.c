/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/link/link.h"

#include <poll.h>

#define GAP_MIN_NS 10000u
#define GAP_MAX_NS 1000000u
#define ASK_SPIN_NS 100000u /* after a copy was queued: small ones are done by then */

static void inflight_arm(struct inflight_list *fs)
{
    const uint64_t now = clock_now_ns();

    if (!fs->timer.prev)
        reactor_arm(fs->reactor, &fs->timer, now < fs->spin_until_ns ? now : now + fs->gap_ns);
}

/* Returns true if earlier work on the same stream is in flight. */
static bool inflight_is_behind(const struct inflight_list *fs, const struct inflight *f)
{
    const struct inflight *other = fs->first;

    while (other != f && (other->stream.stream != f->stream.stream ||
                          other->stream.device.index != f->stream.device.index))
        other = other->next;
    return other != f;
}

/* One round. Returns true if a work has completed. Works of one stream complete in order: an event
 * that is not done when it is asked may be done by the time the next one is. */
static bool inflight_look(struct inflight_list *fs)
{
    struct inflight **at = &fs->first;
    bool landed = false;

    while (*at) {
        struct inflight *f = *at;
        tenrec_error err;
        tenrec_status st = TENREC_EAGAIN;

        if (!inflight_is_behind(fs, f))
            st = device_event_query(f->event, &err);
        if (st == TENREC_EAGAIN) {
            at = &f->next;
            continue;
        }
        /* The completion of the work is unknown: its memory must not be freed before. A failed
         * device returns from the wait at once. */
        if (st)
            device_stream_wait(&f->stream, NULL);
        *at = f->next;
        if (!*at)
            fs->last = at;
        device_event_give(f->event);
        f->event = NULL;
        landed = true;
        f->landed(f, st ? &err : NULL);
        /* It may have started others, at the end only: `at` stays good, but for
         * the end itself. */
    }
    return landed;
}

static void inflight_fire(struct reactor_timer *t)
{
    struct inflight_list *fs = CONTAINER(t, struct inflight_list, timer);

    if (inflight_look(fs))
        fs->gap_ns = GAP_MIN_NS;
    else if (clock_now_ns() >= fs->spin_until_ns)
        fs->gap_ns *= 2;
    if (fs->gap_ns > GAP_MAX_NS)
        fs->gap_ns = GAP_MAX_NS;
    if (fs->look)
        fs->look(fs);
    if (fs->first || fs->lookouts)
        inflight_arm(fs);
}

void inflight_list_init(struct inflight_list *fs, struct reactor *r, bool spins,
                        void (*look_fn)(struct inflight_list *fs))
{
    *fs = (struct inflight_list){
        .reactor = r, .gap_ns = GAP_MIN_NS, .spins = spins, .look = look_fn
    };
    fs->timer.fire = inflight_fire;
    fs->last = &fs->first;
}

void inflight_list_look_soon(struct inflight_list *fs)
{
    fs->gap_ns = GAP_MIN_NS;
    if (fs->spins)
        fs->spin_until_ns = clock_now_ns() + ASK_SPIN_NS;
    reactor_disarm(&fs->timer); /* it may be late */
    inflight_arm(fs);
}

/* Queues the copy, and the event behind it. */
static tenrec_status inflight_queue(struct inflight *f, const struct tenrec_stream *s, void *to,
                                    const void *from, uint64_t bytes, tenrec_error *err)
{
    tenrec_status st = device_enter(s->device.index, err);

    if (st)
        return st;
    st = device_copy(s, to, from, bytes, err);
    if (!st) {
        st = device_event_mark(s, false, &f->event, err);
        if (st)
            device_stream_wait(s, NULL); /* as above */
    }
    device_leave();
    return st;
}

tenrec_status inflight_copy(struct inflight_list *fs, struct inflight *f,
                            const struct tenrec_stream *s, void *to, const void *from,
                            uint64_t bytes, tenrec_error *err)
{
    tenrec_status st = inflight_queue(f, s, to, from, bytes, err);

    if (st)
        return st;
    f->stream = *s;
    f->next = NULL;
    *fs->last = f;
    fs->last = &f->next;
    inflight_list_look_soon(fs);
    return TENREC_OK;
}

bool inflight_list_finish(struct inflight_list *fs, uint32_t ms)
{
    const uint64_t until = clock_now_ns() + (uint64_t)ms * 1000000u;

    reactor_disarm(&fs->timer);
    while (fs->first || fs->lookouts) {
        if (!inflight_look(fs)) {
            if (clock_now_ns() >= until)
                break;
            poll(NULL, 0, 1);
        }
        if (fs->look)
            fs->look(fs);
        reactor_disarm(&fs->timer);
    }
    return !fs->first && !fs->lookouts;
}
