/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/flight.h"

#include <poll.h>

#define GAP_MIN_NS 10000u
#define GAP_MAX_NS 1000000u

#define CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static void arm(struct flights *fs)
{
    if (!fs->timer.prev)
        reactor_arm(fs->reactor, &fs->timer, now_ns() + fs->gap_ns);
}

/* Nobody can say whether the work is done: what it uses must not be given away
 * before. A device that has failed does not let us wait. */
static void wait_for(const struct tenrec_stream *s)
{
    if (device_enter(s->device.index, NULL))
        return;
    driver()->stream_sync((void *)(uintptr_t)s->stream);
    device_leave();
}

/* Is one on the same stream under way that started before it? */
static bool is_behind(const struct flights *fs, const struct flight *f)
{
    const struct flight *other = fs->first;

    while (other != f && (other->stream.stream != f->stream.stream ||
                          other->stream.device.index != f->stream.device.index))
        other = other->next;
    return other != f;
}

/* One round. True when something has landed. Of one stream they land in order: an event
 * that is not done when it is asked may be done by the time the next one is. */
static bool look(struct flights *fs)
{
    struct flight **at = &fs->first;
    bool landed = false;

    while (*at) {
        struct flight *f = *at;
        tenrec_error err;
        tenrec_status st = TENREC_EAGAIN;

        if (!is_behind(fs, f))
            st = device_event_query(f->event, &err);
        if (st == TENREC_EAGAIN) {
            at = &f->next;
            continue;
        }
        if (st)
            wait_for(&f->stream);
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

static void fire(struct reactor_timer *t)
{
    struct flights *fs = CONTAINER(t, struct flights, timer);

    fs->gap_ns = look(fs) ? GAP_MIN_NS : fs->gap_ns * 2;
    if (fs->gap_ns > GAP_MAX_NS)
        fs->gap_ns = GAP_MAX_NS;
    if (fs->look)
        fs->look(fs);
    if (fs->first || fs->lookouts)
        arm(fs);
}

void flights_init(struct flights *fs, struct reactor *r, void (*look_fn)(struct flights *fs))
{
    *fs = (struct flights){ .reactor = r, .gap_ns = GAP_MIN_NS, .look = look_fn };
    fs->timer.fire = fire;
    fs->last = &fs->first;
}

void flights_look_soon(struct flights *fs)
{
    fs->gap_ns = GAP_MIN_NS;
    arm(fs);
}

tenrec_status flight_start(struct flights *fs, struct flight *f, const struct tenrec_stream *s,
                           tenrec_error *err)
{
    const int index = s->device.index;
    tenrec_status st = device_event_get(index, false, &f->event, err);

    if (st)
        return st;
    st = device_enter(index, err);
    if (!st) {
        st = device_event_record(f->event, s->stream, err);
        device_leave();
    }
    if (st) {
        device_event_give(f->event);
        f->event = NULL;
        return st;
    }
    f->stream = *s;
    f->next = NULL;
    *fs->last = f;
    fs->last = &f->next;
    flights_look_soon(fs);
    return TENREC_OK;
}

bool flights_finish(struct flights *fs, uint32_t ms)
{
    const uint64_t until = now_ns() + (uint64_t)ms * 1000000u;

    reactor_disarm(&fs->timer);
    while (fs->first || fs->lookouts) {
        if (!look(fs)) {
            if (now_ns() >= until)
                break;
            poll(NULL, 0, 1);
        }
        if (fs->look)
            fs->look(fs);
        reactor_disarm(&fs->timer);
    }
    return !fs->first && !fs->lookouts;
}
