/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/recorder/recorder.h"

#include "core/base/clock.h"
#include "core/base/forks.h"
#include "core/base/threads.h"
#include "core/config/config.h"
#include "core/config/settings.h"
#include "observe/recorder/reporter.h"
#include "observe/recorder/ring.h"
#include "rpc/call/calls.h"
#include "rpc/call/service.h"

#include <string.h>

/* ---- both sides of calls --------------------------------------------------- */

static _Thread_local struct thin made STATIC_TLS, served STATIC_TLS;

static struct recorder *recorder_of(struct tenrec_worker *w)
{
    return w->service[SERVICE_RECORDER];
}

static float time_between(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (float)(to_ns - from_ns) : 0;
}

static void recorder_ended(struct tenrec_worker *w, const struct future_call *c,
                           struct tenrec_msg *answer, tenrec_status status, uint64_t now_ns)
{
    const uint64_t begun_ns = c->seen.begun_ns;
    struct ring_event e;

    (void)answer;
    if (c->id < 0 || !thin_keeps(&made, begun_ns, now_ns, status))
        return;
    e = (struct ring_event){ .time_ns = begun_ns,
                             .id = c->id,
                             .thread = thread_id(),
                             .peer = c->to,
                             .took_ns = time_between(begun_ns, now_ns),
                             .worker = (uint16_t)w->start,
                             .kind = RING_CALL,
                             .status = (int8_t)status };
    ring_set_text(&e, c->function);
    ring_add(&e);
}

static tenrec_status recorder_run(struct tenrec_call *c, uint32_t rest, tenrec_error *err)
{
    c->began_ns = c->on_stack ? c->arrived_ns : clock_fast_ns();
    if (c->on_stack)
        inline_call_begin(c);
    return observe_run(c, rest, err);
}

static void recorder_served(struct tenrec_call *c, struct tenrec_msg **answer, tenrec_status status,
                            uint64_t now_ns)
{
    const bool later = !c->on_stack && c->function->flags & TENREC_LATER;
    struct ring_event e;

    (void)answer;
    if (!c->began_ns) /* its function did not run */
        return;
    if (c->on_stack)
        inline_call_end();
    if (!thin_keeps(&served, c->began_ns, now_ns, status))
        return;
    e = (struct ring_event){ .time_ns = c->began_ns,
                             .id = c->key.id,
                             .thread = thread_id(),
                             .peer = c->from,
                             .took_ns = time_between(c->began_ns, now_ns),
                             .worker = (uint16_t)c->worker->start,
                             .kind = later ? RING_LATER : RING_SERVE,
                             .status = (int8_t)status };
    ring_set_text(&e, c->function->name);
    ring_add(&e);
}

/* ---- rare events ------------------------------------------------------------ */

static void recorder_noted(struct tenrec_worker *w, enum call_note what, tenrec_peer peer,
                           int64_t id, tenrec_status status, const char *text)
{
    struct ring_event e = { .time_ns = clock_now_ns(),
                            .id = id,
                            .thread = thread_id(),
                            .peer = peer,
                            .worker = (uint16_t)w->start,
                            .kind = (uint8_t)(RING_INSTANT + what),
                            .status = (int8_t)status };
    char reason[TENREC_NAME_MAX + 32];
    const bool lost = what == NOTE_PEER_LOST || (what == NOTE_LEFT && status != TENREC_OK);

    ring_set_text(&e, text);
    ring_add(&e);
    if (lost && peer >= 0 && *recorder_of(w)->dump_dir) {
        snprintf(reason, sizeof reason, "lost worker '%s'", text);
        reporter_write(recorder_of(w)->dump_dir, w->self.name, reason);
    }
}

static const struct call_observer recorder_observer = {
    .ended = recorder_ended,
    .run = recorder_run,
    .served = recorder_served,
    .noted = recorder_noted,
};

/* ---- workers ---------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    struct recorder *first;
} running = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The workers are the parent's. */
static void recorder_forked(void)
{
    pthread_mutex_init(&running.lock, NULL);
    running.first = NULL;
    ring_forked();
}

static struct fork_hook fork_hook = { .child = recorder_forked };

struct recorder *recorders_lock(void)
{
    pthread_mutex_lock(&running.lock);
    return running.first;
}

bool recorders_try_lock(struct recorder **ret)
{
    if (pthread_mutex_trylock(&running.lock) != 0)
        return false;
    *ret = running.first;
    return true;
}

struct recorder *recorders_held(void)
{
    return running.first;
}

void recorders_unlock(void)
{
    pthread_mutex_unlock(&running.lock);
}

/* ---- the service -------------------------------------------------------------- */

static tenrec_status recorder_init(struct tenrec_worker *w, const struct service_config *c,
                                   tenrec_error *err)
{
    (void)c;
    recorder_of(w)->dump_dir = "";
    observe_connect(w, OBSERVER_RECORDER, &recorder_observer);
    return recorder_serve(&w->calls->functions, err);
}

static tenrec_status recorder_start(struct tenrec_worker *w, const struct service_session *s,
                                    tenrec_error *err)
{
    struct recorder *r = recorder_of(w);

    (void)err;
    forks_follow(&fork_hook);
    r->worker = w;
    r->dump_dir = s->observe->dump_dir;
    atomic_store(&r->stacks, s->observe->stacks);
    atomic_store(&r->stuck_after_ms, w->settings->stuck_after_ms);
    memset(r->mark, 0, sizeof r->mark);
    pthread_mutex_lock(&running.lock);
    r->next = running.first;
    running.first = r;
    pthread_mutex_unlock(&running.lock);
    stuck_watch();
    observe_turn(w, OBSERVER_RECORDER, s->observe->recorder);
    observe_note(w, NOTE_STARTED, w->self.id, 0, TENREC_OK, w->self.name);
    return TENREC_OK;
}

void recorder_set_stuck_after(struct tenrec_worker *w, uint64_t ms)
{
    atomic_store(&recorder_of(w)->stuck_after_ms, ms);
    stuck_watch();
}

/* Afterwards no thread of the recorder touches the worker, nor one that walks the list. */
static void recorder_close(struct tenrec_worker *w, const tenrec_error *why)
{
    struct recorder **at = &running.first, *r = recorder_of(w);
    bool found;

    (void)why;
    observe_turn(w, OBSERVER_RECORDER, false);
    pthread_mutex_lock(&running.lock);
    while (*at && *at != r)
        at = &(*at)->next;
    found = *at != NULL;
    if (found)
        *at = r->next;
    pthread_mutex_unlock(&running.lock);
    if (!found)
        return;
    observe_note(w, NOTE_STOPPED, w->self.id, 0, TENREC_OK, w->self.name);
    reporter_finish();
}

const struct service recorder_service = {
    .name = "recorder",
    .size = sizeof(struct recorder),
    .init = recorder_init,
    .start = recorder_start,
    .close = recorder_close,
};
