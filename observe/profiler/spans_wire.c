/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/profiler/spans_wire.h"

#include "core/tensor/tensor.h"
#include "rpc/value/cbor_writer.h"

#include <string.h>

enum { HEAD_ITEMS = 3, EVENT_ITEMS = 16, TEXTS = 3, NUMBERS = EVENT_ITEMS - TEXTS };

/* An event on the wire: texts, then numbers. */
struct fields {
    const char *text[TEXTS];
    int64_t number[NUMBERS];
};

static int64_t as_int(uint64_t n)
{
    return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static struct fields fields_of(const struct tenrec_event *e, uint64_t arrival_ns)
{
    const uint64_t start_ns = e->start_ns > arrival_ns ? e->start_ns - arrival_ns : 0;

    return (struct fields){
        .text = { e->name, e->worker_name, e->thread_name },
        .number = { e->kind, e->worker_id, as_int(e->thread), e->caller_id, e->call_id, e->status,
                    as_int(start_ns), as_int(e->duration_ns), as_int(e->run_ns),
                    as_int(e->queue_ns), as_int(e->wire_ns), as_int(e->sent_bytes),
                    as_int(e->received_bytes) },
    };
}

/* ---- writing ---------------------------------------------------------------- */

static size_t fields_size(const struct fields *f)
{
    size_t n = cbor_head_size(EVENT_ITEMS);

    for (size_t i = 0; i < TEXTS; i++) {
        size_t len = strlen(f->text[i]);
        n += cbor_head_size(len) + len;
    }
    for (size_t i = 0; i < NUMBERS; i++)
        n += cbor_int_size(f->number[i]);
    return n;
}

static void put_fields(struct cbor_writer *w, const struct fields *f)
{
    cbor_write_array(w, EVENT_ITEMS);
    for (size_t i = 0; i < TEXTS; i++)
        cbor_write_text(w, f->text[i], strlen(f->text[i]));
    for (size_t i = 0; i < NUMBERS; i++)
        cbor_write_int(w, f->number[i]);
}

/* Event `i` to write: the call itself, then the events in it. */
static struct fields spans_wire_fields(const struct spans *s, size_t i)
{
    return fields_of(i == 0 ? s->served : s->events->event[i - 1], s->arrival_ns);
}

/* Copies the message, with room for `more` bytes after its payload. */
static struct tenrec_msg *spans_wire_grow(struct tenrec_msg *old, size_t more)
{
    struct tenrec_msg *msg = rpc_message_new(old->payload_len + more, old->n_tensors);

    if (!msg)
        return NULL;
    msg->type = old->type;
    msg->flags = old->flags;
    msg->key_len = old->key_len;
    if (msg->key_len == 0 && old->payload_len <= UINT32_MAX)
        msg->key_len = (uint32_t)old->payload_len;
    memcpy(msg->payload, old->payload, (size_t)old->payload_len);
    for (uint32_t i = 0; i < old->n_tensors; i++) {
        *tenrec_msg_tensor(msg, i) = *tenrec_msg_tensor(old, i);
        rpc_message_set_owner(msg, i, tenrec_tensor_share(rpc_message_owner(old, i)));
    }
    return msg;
}

struct tenrec_msg *spans_attach(struct tenrec_msg *answer, const struct spans *s)
{
    const int64_t whole_ns = as_int(s->end_ns - s->arrival_ns);
    /* Assumes the largest numbers in the head. */
    size_t n = 0, bytes = cbor_head_size(HEAD_ITEMS) + 3 * cbor_int_size(INT64_MAX);
    struct tenrec_msg *msg;
    struct cbor_writer w;
    struct fields f;
    uint64_t dropped;

    for (; n < s->events->n + 1; n++) {
        f = spans_wire_fields(s, n);
        if (bytes + fields_size(&f) > s->max)
            break;
        bytes += fields_size(&f);
    }
    dropped = s->events->dropped + (s->events->n + 1 - n);
    bytes -= 3 * cbor_int_size(INT64_MAX);
    bytes += cbor_int_size(whole_ns) + cbor_int_size(as_int(dropped)) + cbor_head_size(n);
    if (bytes > s->max || !(msg = spans_wire_grow(answer, bytes)))
        return answer;
    w.at = (unsigned char *)msg->payload + answer->payload_len;
    w.end = w.at + bytes;
    cbor_write_array(&w, HEAD_ITEMS);
    cbor_write_int(&w, whole_ns);
    cbor_write_int(&w, as_int(dropped));
    cbor_write_array(&w, n);
    for (size_t i = 0; i < n; i++) {
        f = spans_wire_fields(s, i);
        put_fields(&w, &f);
    }
    answer->release(answer);
    return msg;
}

/* ---- reading, of untrusted bytes ---------------------------------------------- */

static bool spans_wire_next(struct cbor_reader *r, enum cbor_kind kind, struct cbor_item *ret)
{
    return cbor_read_item(r, ret, NULL) == TENREC_OK && ret->kind == kind;
}

static bool next_count(struct cbor_reader *r, uint64_t *ret)
{
    struct cbor_item it;

    if (!spans_wire_next(r, CBOR_KIND_INT, &it) || it.integer < 0)
        return false;
    *ret = (uint64_t)it.integer;
    return true;
}

static bool next_text(struct cbor_reader *r, char *to, size_t max)
{
    struct cbor_item it;

    if (!spans_wire_next(r, CBOR_KIND_TEXT, &it) || it.n > max ||
        (it.n > 0 && memchr(it.data, 0, (size_t)it.n)))
        return false;
    if (it.n > 0)
        memcpy(to, it.data, (size_t)it.n);
    to[it.n] = '\0';
    return true;
}

/* Skips items of later versions: numbers and texts. */
static bool spans_wire_skip(struct cbor_reader *r, uint64_t n)
{
    struct cbor_item it;

    for (; n > 0; n--)
        if (cbor_read_item(r, &it, NULL) != TENREC_OK || it.kind == CBOR_KIND_ARRAY ||
            it.kind == CBOR_KIND_MAP || it.kind == CBOR_KIND_TAG)
            return false;
    return true;
}

bool spans_read_head(const void *data, size_t len, struct spans_head *ret)
{
    struct cbor_item it;

    *ret = (struct spans_head){ .r = cbor_reader_of(data, len) };
    if (!spans_wire_next(&ret->r, CBOR_KIND_ARRAY, &it) || it.n != HEAD_ITEMS ||
        !next_count(&ret->r, &ret->whole_ns) || !next_count(&ret->r, &ret->dropped) ||
        !spans_wire_next(&ret->r, CBOR_KIND_ARRAY, &it))
        return false;
    ret->n = (size_t)it.n;
    return true;
}

static bool spans_wire_fits(int64_t n, int64_t least, int64_t most)
{
    return n >= least && n <= most;
}

static bool spans_wire_fill(const struct fields *f, struct tenrec_event *e)
{
    if (!spans_wire_fits(f->number[0], TENREC_EVENT_CALL, TENREC_EVENT_MARK) ||
        !spans_wire_fits(f->number[1], TENREC_ANONYMOUS, INT16_MAX) ||
        !spans_wire_fits(f->number[3], TENREC_ANONYMOUS, INT16_MAX) ||
        !spans_wire_fits(f->number[5], INT32_MIN, TENREC_OK))
        return false;
    for (size_t i = 6; i < NUMBERS; i++)
        if (f->number[i] < 0)
            return false;
    *e = (struct tenrec_event){ .name = f->text[0],
                                .worker_name = f->text[1],
                                .thread_name = f->text[2],
                                .kind = (uint32_t)f->number[0],
                                .worker_id = (tenrec_peer)f->number[1],
                                .thread = (uint64_t)f->number[2],
                                .caller_id = (tenrec_peer)f->number[3],
                                .call_id = f->number[4],
                                .status = (int32_t)f->number[5],
                                .start_ns = (uint64_t)f->number[6],
                                .duration_ns = (uint64_t)f->number[7],
                                .run_ns = (uint64_t)f->number[8],
                                .queue_ns = (uint64_t)f->number[9],
                                .wire_ns = (uint64_t)f->number[10],
                                .sent_bytes = (uint64_t)f->number[11],
                                .received_bytes = (uint64_t)f->number[12] };
    return true;
}

static bool read_event(struct cbor_reader *r, spans_fn *fn, void *arg)
{
    char name[EVENT_NAME_MAX + 1], worker[EVENT_LABEL_MAX + 1], thread[EVENT_LABEL_MAX + 1];
    struct fields f = { .text = { name, worker, thread } };
    struct tenrec_event e;
    struct cbor_item it, number;

    if (!spans_wire_next(r, CBOR_KIND_ARRAY, &it) || it.n < EVENT_ITEMS ||
        !next_text(r, name, EVENT_NAME_MAX) || !next_text(r, worker, EVENT_LABEL_MAX) ||
        !next_text(r, thread, EVENT_LABEL_MAX))
        return false;
    for (size_t i = 0; i < NUMBERS; i++) {
        if (!spans_wire_next(r, CBOR_KIND_INT, &number))
            return false;
        f.number[i] = number.integer;
    }
    if (!spans_wire_skip(r, it.n - EVENT_ITEMS) || !spans_wire_fill(&f, &e))
        return false;
    if (fn)
        fn(arg, &e);
    return true;
}

bool spans_read_events(struct spans_head *head, size_t max, spans_fn *fn, void *arg)
{
    for (size_t i = 0; i < head->n; i++) {
        if (!read_event(&head->r, i < max ? fn : NULL, arg))
            return false;
        head->dropped += i >= max;
    }
    return head->r.at == head->r.end;
}
