/* gather.c - both sides. Each worker counts the gathers of a set, so the n-th
 * of one meets the n-th of the others, whichever thread makes it. A gather
 * that failed stays failed: who comes late is told at once and goes on to the
 * next number, so the set does not get out of step. */
#include "rpc/gather.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/memory.h"
#include "rpc/call.h"
#include "rpc/codec.h"
#include "rpc/dispatch.h"
#include "rpc/future.h"
#include "rpc/gather_set.h"
#include "rpc/nameset.h"
#include "rpc/rref_value.h"
#include "rpc/stream_value.h"
#include "rpc/thread.h"
#include "rpc/worker.h"

#include <stdlib.h>

enum { OPEN_MAX = 4096, LATE_MS = 1000 };

/* One worker that has come. */
struct part {
    tenrec_peer id;
    struct tenrec_value *value;   /* owns */
    struct tenrec_future *future; /* shared; of our own part */
    int64_t msg_id;               /* of another's */
    struct tenrec_route route;
};

struct gather {
    struct gather *next;
    int64_t number;
    uint64_t deadline_ns; /* the first limit of those who have come */
    size_t n, came;
    struct part *part; /* n; the first `came` are there */
    tenrec_peer *id;   /* n: the set, ordered by name */
    char key[];        /* the set, as text */
};

void gathers_init(struct gathers *g)
{
    *g = (struct gathers){ .n_open = 0 };
    pthread_mutex_init(&g->lock, NULL);
}

static void gather_drop(struct gather *g)
{
    for (size_t i = 0; i < g->came; i++) {
        tenrec_value_drop(g->part[i].value);
        tenrec_future_drop(g->part[i].future);
    }
    free(g->part);
    free(g->id);
    free(g);
}

void gathers_reset(struct gathers *g)
{
    gather_sets_drop(&g->sets);
    while (g->open) {
        struct gather *one = g->open;
        g->open = one->next;
        gather_drop(one);
    }
    g->n_open = 0;
}

void gathers_finish(struct gathers *g)
{
    gathers_reset(g);
    pthread_mutex_destroy(&g->lock);
}

/* ---- the leader ----------------------------------------------------------- */

static void part_fail(struct tenrec_worker *w, struct part *p, const tenrec_error *why)
{
    if (p->future)
        future_complete_error(p->future, why);
    else
        dispatch_answer_error(w, p->id, p->msg_id, &p->route, true, why);
}

static void fail(struct tenrec_worker *w, struct gather *g, const tenrec_error *why)
{
    for (size_t i = 0; i < g->came; i++)
        part_fail(w, &g->part[i], why);
    gather_drop(g);
}

/* "'a', 'b' did not come". */
static void missing(struct tenrec_worker *w, const struct gather *g, tenrec_error *why)
{
    size_t at = 0;

    tenrec_fail(why, TENREC_ETIMEDOUT, "%s", "");
    for (size_t i = 0; i < g->n && at < sizeof why->text; i++) {
        bool came = false;
        for (size_t k = 0; k < g->came; k++)
            came = came || g->part[k].id == g->id[i];
        if (!came)
            at += (size_t)snprintf(why->text + at, sizeof why->text - at, "%s'%s'", at ? ", " : "",
                                   peers_name(&w->peers, g->id[i]));
    }
    if (at < sizeof why->text)
        snprintf(why->text + at, sizeof why->text - at, " did not come to the gather in time");
}

static void complete(struct tenrec_worker *w, struct gather *g)
{
    struct tenrec_entry *entry = memory_new(g->n, sizeof *entry);
    struct tenrec_value map, *copy = NULL;
    tenrec_error why;

    if (!entry) {
        tenrec_fail(&why, TENREC_ENOMEM, "no memory for what %zu workers gathered", g->n);
        fail(w, g, &why);
        return;
    }
    for (size_t i = 0; i < g->n; i++) {
        entry[i].key = peers_name(&w->peers, g->part[i].id);
        entry[i].value = *g->part[i].value;
    }
    map = tenrec_map(entry, g->n);
    for (size_t i = 0; i < g->n; i++) {
        struct part *p = &g->part[i];
        if (!p->future)
            dispatch_answer_value(w, p->id, p->msg_id, &p->route, TENREC_MSG_GATHER_RET, &map);
        else if (tenrec_value_copy(&map, &copy, &why) == TENREC_OK)
            future_complete_value(p->future, copy);
        else
            future_complete_error(p->future, &why);
    }
    free(entry);
    gather_drop(g);
}

/* Takes the gather out of the open ones. Lock held. */
static struct gather *take(struct gathers *gs, const char *key, int64_t number)
{
    struct gather **at, *g;

    for (at = &gs->open; (g = *at); at = &g->next)
        if (g->number == number && strcmp(g->key, key) == 0) {
            *at = g->next;
            gs->n_open--;
            return g;
        }
    return NULL;
}

/* Is `id` one that the gather still waits for? */
static bool waits_for(const struct gather *g, tenrec_peer id)
{
    bool in_set = false, came = false;

    for (size_t i = 0; i < g->n; i++)
        in_set = in_set || g->id[i] == id;
    for (size_t i = 0; i < g->came; i++)
        came = came || g->part[i].id == id;
    return in_set && !came;
}

/* A gather that fails: who comes to it late shall know. Lock held. */
static void take_failed(struct gathers *gs, struct gather *g, tenrec_peer lost)
{
    struct gather_set *set = gather_set_get(&gs->sets, g->key);

    take(gs, g->key, g->number);
    if (set)
        gather_set_fail(set, g->number, lost);
}

/* Takes one out whose limit has passed; *next_ns is the first of the other limits. */
static struct gather *take_late(struct gathers *gs, uint64_t now, uint64_t *next_ns)
{
    struct gather **at, *g, *late = NULL;

    *next_ns = CLOCK_NEVER;
    pthread_mutex_lock(&gs->lock);
    for (at = &gs->open; (g = *at) && !late; at = &g->next) {
        if (g->deadline_ns <= now)
            late = g;
        else if (g->deadline_ns < *next_ns)
            *next_ns = g->deadline_ns;
    }
    if (late)
        take_failed(gs, late, -1);
    pthread_mutex_unlock(&gs->lock);
    return late;
}

void gather_expire(struct tenrec_worker *w)
{
    uint64_t now = clock_now_ns(), next;
    struct gather *g;
    tenrec_error why;

    if (worker_enter(w, NULL) != TENREC_OK)
        return; /* shutdown fails them all */
    while ((g = take_late(&w->gathers, now, &next))) {
        missing(w, g, &why);
        fail(w, g, &why);
    }
    worker_leave(w);
    if (next != CLOCK_NEVER)
        loop_timer_arm(w->deadlines, next);
}

/* The leader answers a little before the others give up, so that they hear
 * who is missing. */
static uint64_t limit_of(int64_t ms)
{
    if (ms == TENREC_TIMEOUT_NONE)
        return CLOCK_NEVER;
    return clock_deadline_ms((uint64_t)(ms - (ms / 10 > 100 ? 100 : ms / 10)));
}

static struct gather *gather_new(const struct nameset *s, int64_t number)
{
    size_t len = strlen(s->key) + 1;
    struct gather *g = memory_new(1, sizeof *g + len);

    if (!g)
        return NULL;
    g->number = number;
    g->deadline_ns = CLOCK_NEVER;
    g->n = s->n;
    g->part = memory_new(s->n, sizeof g->part[0]);
    g->id = memory_new(s->n, sizeof g->id[0]);
    if (!g->part || !g->id) {
        gather_drop(g);
        return NULL;
    }
    memcpy(g->id, s->id, s->n * sizeof g->id[0]);
    memcpy(g->key, s->key, len);
    return g;
}

/* Finds or opens the gather; NULL when all have come to it long since. Lock held. */
static tenrec_status find(struct tenrec_worker *w, const struct nameset *s, int64_t number,
                          struct gather **ret, tenrec_error *err)
{
    struct gathers *gs = &w->gathers;
    struct gather_set *set = gather_set_get(&gs->sets, s->key);
    struct gather *g;
    tenrec_peer lost;

    for (g = gs->open; g; g = g->next)
        if (g->number == number && strcmp(g->key, s->key) == 0)
            break;
    if (!g && set && gather_set_was_whole(set, number)) {
        *ret = NULL;
        return TENREC_OK;
    }
    if (!g && set && gather_set_has_failed(set, number, &lost))
        return lost < 0 ? tenrec_fail(err, TENREC_ETIMEDOUT,
                                      "this gather has failed: a limit ran out before all had come")
                        : tenrec_fail(err, TENREC_EPEER_LOST,
                                      "this gather has failed: '%s' was lost before it came",
                                      peers_name(&w->peers, lost));
    if (!g && gs->n_open >= OPEN_MAX)
        return tenrec_fail(err, TENREC_EAGAIN, "%d gathers are open already", OPEN_MAX);
    if (!g) {
        if (!set || !(g = gather_new(s, number)))
            return tenrec_fail(err, TENREC_ENOMEM, "no memory for a gather");
        g->next = gs->open;
        gs->open = g;
        gs->n_open++;
    }
    *ret = g;
    return TENREC_OK;
}

/* Has who comes here come before? By the same message: whatever carries them may
 * double them. By another one: EEXIST. Lock held. */
static tenrec_status came_before(struct tenrec_worker *w, const struct gather *g,
                                 const struct part *part, bool *ret_again, tenrec_error *err)
{
    *ret_again = !g;
    for (size_t i = 0; g && i < g->came; i++) {
        if (g->part[i].id != part->id)
            continue;
        *ret_again = g->part[i].msg_id == part->msg_id &&
                     g->part[i].route.generation == part->route.generation;
        if (!*ret_again)
            return tenrec_fail(err, TENREC_EEXIST, "'%s' has come to this gather already",
                               peers_name(&w->peers, part->id));
    }
    return TENREC_OK;
}

/* One more has come; takes *part on success. */
static tenrec_status join(struct tenrec_worker *w, const struct nameset *s, int64_t number,
                          int64_t ms, const struct part *part, tenrec_error *err)
{
    const uint64_t limit = limit_of(ms);
    struct gather *g = NULL, *whole = NULL;
    bool member = false, again = false;
    tenrec_status st;

    for (size_t i = 0; i < s->n; i++)
        member = member || s->id[i] == part->id;
    if (!member)
        return tenrec_fail(err, TENREC_EINVAL, "'%s' is not in the set that it gathers",
                           peers_name(&w->peers, part->id));
    pthread_mutex_lock(&w->gathers.lock);
    st = find(w, s, number, &g, err);
    if (st == TENREC_OK)
        st = came_before(w, g, part, &again, err);
    if (st == TENREC_OK && g && !again) {
        g->part[g->came++] = *part;
        if (limit < g->deadline_ns)
            g->deadline_ns = limit;
        if (g->came == g->n) {
            whole = take(&w->gathers, s->key, number);
            gather_set_add_whole(gather_set_get(&w->gathers.sets, s->key), number);
        }
    }
    pthread_mutex_unlock(&w->gathers.lock);
    if (again)
        tenrec_value_drop(part->value);
    else if (whole)
        complete(w, whole);
    else if (st == TENREC_OK && limit != CLOCK_NEVER)
        loop_timer_arm(w->deadlines, limit);
    return st;
}

void gather_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    struct part part = { .id = from, .msg_id = msg->id, .route = msg->route };
    struct tenrec_value *in = NULL;
    const char *key;
    int64_t number, ms;
    const struct tenrec_value *value;
    struct nameset s = { .n = 0 };
    tenrec_error why;
    tenrec_status st = codec_read_value(msg, &in, &why);

    msg->release(msg);
    if (st == TENREC_OK && in->type != TENREC_VALUE_ARRAY)
        st = tenrec_fail(&why, TENREC_EPROTOCOL, "a gather's payload is no array");
    if (st == TENREC_OK)
        st = tenrec_values_get(in->u.array, in->n, &why, "siiv", &key, &number, &ms, &value);
    if (st == TENREC_OK && (number < 0 || ms <= 0))
        st = tenrec_fail(&why, TENREC_EPROTOCOL, "a gather's payload has negative numbers");
    if (st == TENREC_OK)
        st = nameset_of_key(&w->peers, key, &s, &why);
    if (st == TENREC_OK)
        st = tenrec_value_copy(value, &part.value, &why);
    if (st == TENREC_OK && (st = join(w, &s, number, ms, &part, &why)) != TENREC_OK)
        tenrec_value_drop(part.value);
    if (st != TENREC_OK)
        dispatch_answer_error(w, from, part.msg_id, &part.route, true, &why);
    nameset_finish(&s);
    tenrec_value_drop(in);
}

void gather_lost(struct tenrec_worker *w, tenrec_peer peer, const tenrec_error *why)
{
    tenrec_error told = *why;
    struct gather *g;

    tenrec_error_prefix(&told, "'%s' was lost before it came", peers_name(&w->peers, peer));
    do {
        pthread_mutex_lock(&w->gathers.lock);
        for (g = w->gathers.open; g && !waits_for(g, peer); g = g->next)
            ;
        if (g)
            take_failed(&w->gathers, g, peer);
        pthread_mutex_unlock(&w->gathers.lock);
        if (g)
            fail(w, g, &told);
    } while (g);
}

void gather_forget(struct tenrec_worker *w, const char *name, uint64_t incarnation)
{
    pthread_mutex_lock(&w->gathers.lock);
    gather_sets_forget(&w->gathers.sets, name, incarnation);
    pthread_mutex_unlock(&w->gathers.lock);
}

void gather_fail_all(struct tenrec_worker *w, const tenrec_error *why)
{
    struct gather *g;

    for (;;) {
        pthread_mutex_lock(&w->gathers.lock);
        g = w->gathers.open;
        if (g) {
            w->gathers.open = g->next;
            w->gathers.n_open--;
        }
        pthread_mutex_unlock(&w->gathers.lock);
        if (!g)
            return;
        fail(w, g, why);
    }
}

/* ---- taking part ---------------------------------------------------------- */

static tenrec_status lead(struct tenrec_worker *w, const struct nameset *s, int64_t number,
                          int64_t ms, const struct tenrec_value *value, struct tenrec_future **ret,
                          tenrec_error *err)
{
    struct part part = { .id = w->self.id };
    struct tenrec_future *f = NULL;
    tenrec_status st = tenrec_future_new(&f, err);

    if (st == TENREC_OK)
        st = tenrec_value_copy(value, &part.value, err);
    if (st != TENREC_OK) {
        tenrec_future_drop(f);
        return st;
    }
    part.future = tenrec_future_share(f);
    st = join(w, s, number, ms, &part, err);
    if (st == TENREC_OK) {
        *ret = f;
        return TENREC_OK;
    }
    tenrec_value_drop(part.value);
    tenrec_future_drop(f);
    tenrec_future_drop(f);
    return st;
}

static tenrec_status follow(struct tenrec_worker *w, const struct nameset *s, int64_t number,
                            int64_t ms, uint64_t deadline_ns, const struct tenrec_value *value,
                            struct tenrec_future **ret, tenrec_error *err)
{
    struct tenrec_value item[] = { tenrec_text(s->key), tenrec_int(number), tenrec_int(ms),
                                   *value };
    struct tenrec_value array = tenrec_array(item, 4);
    struct call_spec spec = {
        .to = s->id[0], .function = "all_gather", .deadline_ns = deadline_ns, .want_value = true
    };
    struct tenrec_msg *msg;
    tenrec_status st = codec_write_value(&array, TENREC_MSG_GATHER, &msg, err);

    if (st != TENREC_OK)
        return st;
    msg->flags |= TENREC_MSG_CONTROL;
    return call_send(w, &spec, msg, ret, err);
}

tenrec_status tenrec_all_gather(struct tenrec_worker *w, const struct tenrec_value *value,
                                const char *const *names, size_t n, int64_t ms,
                                struct tenrec_value **ret, tenrec_error *err)
{
    const struct tenrec_value nil = tenrec_nil();
    struct tenrec_future *f = NULL;
    struct gather_set *set;
    struct nameset s = { .n = 0 };
    uint64_t deadline_ns;
    int64_t number = -1;
    tenrec_status st;

    if (thread_state.no_block > 0)
        return tenrec_fail(err, TENREC_EWOULDBLOCK,
                           "an inline function or a callback may not wait for a gather");
    if (value && rrefs_in(value))
        return tenrec_fail(err, TENREC_EUNSUPPORTED, "references are not gathered");
    if (value_on_devices(value))
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "tensors on devices are not gathered: give copies in the host "
                           "(tenrec_tensor_to)");
    st = worker_enter(w, err);
    if (st != TENREC_OK)
        return st;
    st = call_deadline(w, &ms, &deadline_ns, err);
    if (st == TENREC_OK)
        st = nameset_of_names(&w->peers, names, n, &s, err);
    if (st == TENREC_OK) {
        pthread_mutex_lock(&w->gathers.lock);
        if ((set = gather_set_get(&w->gathers.sets, s.key)))
            number = set->next++;
        pthread_mutex_unlock(&w->gathers.lock);
        if (number < 0)
            st = tenrec_fail(err, TENREC_ENOMEM, "no memory for a gather");
        else if (s.id[0] == w->self.id)
            st = lead(w, &s, number, ms, value ? value : &nil, &f, err);
        else
            st = follow(w, &s, number, ms, deadline_ns, value ? value : &nil, &f, err);
    }
    nameset_finish(&s);
    worker_leave(w);
    if (st == TENREC_OK)
        st = tenrec_future_wait(f, ms, err);
    if (f && st == TENREC_ETIMEDOUT && !tenrec_future_done(f)) {
        gather_expire(w); /* we lead, and the loop is late to say who is missing */
        st = tenrec_future_wait(f, LATE_MS, err);
    }
    if (st == TENREC_OK && ret)
        st = future_take_value(f, ret, err);
    tenrec_future_drop(f);
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "gather");
    return st;
}

tenrec_status tenrec_barrier(struct tenrec_worker *w, const char *const *names, size_t n,
                             int64_t ms, tenrec_error *err)
{
    return tenrec_all_gather(w, NULL, names, n, ms, NULL, err);
}
