/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_messages.c - the VIEW messages of sweeps. monitor.lock. */
#include "rpc/monitor/view_message.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "rpc/call/call.h"
#include "rpc/future/worker.h"
#include "rpc/rref/rref.h"
#include "rpc/value/codec.h"

#include <stdlib.h>

enum { SWEEP_LEVEL = VIEW_NUMBERS, SWEEP_NEWS, SWEEP_ITEMS };
/* Of a member to be, which leads a block already. Its changes are not used. */
enum { STRANGER_PAYLOAD_MAX = SWEEP_NEWS_MAX + 128 };

static struct tenrec_msg *sweep_write(const struct monitor *m, const struct sweep_send *s)
{
    const struct tenrec_value item[SWEEP_ITEMS] = {
        [VIEW_VERSION] = tenrec_value_int(s->version),
        [VIEW_FLAGS] = tenrec_value_int(s->kind == SWEEP_UP ? FLAG_UP : FLAG_DOWN),
        [VIEW_ID] = tenrec_value_int(m->w->self.id),
        [VIEW_INCARNATION] = tenrec_value_int(m->incarnation),
        [SWEEP_LEVEL] = tenrec_value_int(s->to.level),
        [SWEEP_NEWS] = tenrec_value_bytes(s->news.data, s->news.len),
    };
    const struct tenrec_value array = tenrec_value_array(item, SWEEP_ITEMS);
    struct tenrec_msg *msg = NULL;

    if (s->news.failed || codec_write_value(&array, TENREC_MSG_VIEW, &msg, NULL) != TENREC_OK)
        return NULL;
    return msg;
}

void monitor_sweep_send(struct monitor *m, struct sweep_send *sweep)
{
    struct sent *s = memory_new(1, sizeof *s);
    struct tenrec_msg *msg = s ? sweep_write(m, sweep) : NULL;

    bytes_free(&sweep->news);
    if (!msg) { /* out of memory: again after the next event */
        free(s);
        return;
    }
    pthread_mutex_lock(&m->lock);
    s->id = sweep->to.id;
    s->incarnation = sweep->to.incarnation;
    s->sweep = *sweep;
    sent_add(m, s, msg);
    pthread_mutex_unlock(&m->lock);
    chain_send(m->w->chain, s->id, msg, (struct tenrec_done){ sent_done, s });
}

bool monitor_sweep_waits(const struct monitor *m, const struct spread_child *to,
                         enum sweep_kind kind)
{
    for (const struct sent *s = m->sent; s; s = s->next)
        if (!s->over && s->sweep.kind == kind && s->incarnation == to->incarnation &&
            (kind == SWEEP_UP || s->sweep.to.level == to->level))
            return true;
    return false;
}

/* Requests for a block wait for the members below, which their leader suspects first. */
static uint64_t patience_ns(const struct monitor *m, const struct sent *s)
{
    const unsigned levels = s->sweep.kind == SWEEP_UP ? SPREAD_ALL + 1 : s->sweep.to.level;

    return m->beats.rules.interval_ns * m->beats.rules.misses * (levels + 1);
}

/* Bytes that arrive from the receiver are signs of its life: our message may wait behind others.
 * But not for ever: a receiver whose monitor waits for a callback of its program answers all but
 * this message. */
static uint64_t due_ns(const struct monitor *m, const struct sent *s)
{
    const uint64_t patient_ns = patience_ns(m, s);
    const uint64_t moved_ns = traffic_moved_ns(m, s->id);
    const uint64_t most_ns = s->since_ns + patient_ns;

    return (moved_ns < s->since_ns ? s->since_ns
            : moved_ns < most_ns   ? moved_ns
                                   : most_ns) +
           patient_ns;
}

void monitor_sweep_expire(struct monitor *m, uint64_t *next_ns)
{
    const uint64_t now_ns = clock_now_ns();

    for (struct sent *s = m->sent; s; s = s->next) {
        uint64_t end_ns;

        if (s->sweep.kind == SWEEP_NONE || s->over)
            continue;
        end_ns = due_ns(m, s);
        if (end_ns > now_ns) {
            *next_ns = end_ns < *next_ns ? end_ns : *next_ns;
            continue;
        }
        s->over = m->pump = true;
        /* It may answer the polls of a suspect at once. */
        sweep_shun(m, &s->sweep.to);
        sent_lost(m, s);
    }
}

void monitor_sweep_answer(struct monitor *m, const struct sweep *s, bool done)
{
    int64_t number[RET_NUMBERS] = { [RET_VERSION] = done ? s->version : 0 };
    struct tenrec_msg *msg = NULL;

    pthread_mutex_lock(&m->lock);
    number[RET_KNOWN] = membership_view_find(&m->view, s->id, s->incarnation) != NULL;
    pthread_mutex_unlock(&m->lock);
    if (rref_numbers_write(TENREC_MSG_VIEW_RET, number, RET_NUMBERS, &msg, NULL) == TENREC_OK)
        answer_send(m->w, s->from, s->msg_id, &s->route, msg, NULL);
}

/* *ret is NULL if the message is of no sweep. errors: EPROTOCOL, ENOMEM */
static tenrec_status sweep_read(struct tenrec_worker *w, tenrec_peer from,
                                const struct tenrec_msg *msg, struct sweep **ret, tenrec_error *err)
{
    struct tenrec_value *v = NULL;
    tenrec_status st = TENREC_OK;
    int64_t version, flags, id, incarnation, level;
    const struct tenrec_value *item;
    struct sweep *s;

    *ret = NULL;
    if (from < 0 && msg->payload_len > STRANGER_PAYLOAD_MAX)
        st = tenrec_fail(err, TENREC_EPROTOCOL,
                         "a caller that is no member sent a view of %llu bytes",
                         (unsigned long long)msg->payload_len);
    if (st == TENREC_OK)
        st = codec_read_value(msg, &v, err);
    if (st != TENREC_OK || v->type != TENREC_VALUE_ARRAY || v->n != SWEEP_ITEMS)
        goto out;
    item = v->u.array;
    st = tenrec_value_unpack(item, SWEEP_NEWS, err, "iiiii", &version, &flags, &id, &incarnation,
                             &level);
    if (st == TENREC_OK &&
        (item[SWEEP_NEWS].type != TENREC_VALUE_BYTES || version < 0 || level < 0 ||
         level > SPREAD_ALL || id < 0 || id >= RANKS_MAX || incarnation < 1 ||
         (flags != FLAG_UP && flags != FLAG_DOWN) || (from >= 0 && from != id)))
        st = tenrec_fail(err, TENREC_EPROTOCOL, "malformed view from '%s'",
                         peers_name(&w->peers, from));
    if (st != TENREC_OK)
        goto out;
    s = memory_new(1, sizeof *s);
    if (s && from >= 0) {
        s->news = bytes_copy(item[SWEEP_NEWS].u.bytes, item[SWEEP_NEWS].n);
        s->news_len = item[SWEEP_NEWS].n;
    }
    if (!s || (from >= 0 && !s->news)) {
        free(s);
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for the changes of a view");
        goto out;
    }
    s->kind = flags == FLAG_UP ? SWEEP_UP : SWEEP_DOWN;
    s->level = flags == FLAG_UP ? SPREAD_ALL : (unsigned)level;
    s->from = from;
    s->id = (tenrec_peer)id;
    s->incarnation = incarnation;
    s->version = version;
    s->msg_id = msg->id;
    s->route = msg->route;
    *ret = s;
out:
    tenrec_value_drop(v);
    return st;
}

bool sweep_arrived(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg)
{
    struct monitor *m = group_of(w)->monitor;
    struct sweep *s, *refused = NULL;

    if (!m || sweep_read(w, from, msg, &s, NULL) != TENREC_OK || !s)
        return false;
    pthread_mutex_lock(&m->lock);
    /* A message under the id of a member in another life. */
    s->stranger = from < 0 || !membership_view_find(&m->view, from, s->incarnation);
    refused = m->stopped || m->expelled ? s : sweep_add(m, s);
    pthread_mutex_unlock(&m->lock);
    if (refused) {
        monitor_sweep_answer(m, refused, false);
        sweep_free(refused);
    }
    return true;
}
