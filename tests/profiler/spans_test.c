/* SPDX-License-Identifier: Apache-2.0 */
/* spans_test.c - the spans behind an answer: what is written, what is refused. */
#include "../testing.h"

#include "core/tensor/tensor.h"
#include "observe/profiler/spans_wire.h"
#include "rpc/value/cbor_writer.h"
#include "rpc/value/codec.h"

#include <stdlib.h>
#include <tenrec/future.h>
#include <tenrec/message.h>
#include <tenrec/profiler.h>

enum { EVENTS = 8 };

struct got {
    size_t n;
    struct tenrec_event *event[EVENTS];
};

static void keep(void *arg, struct tenrec_event *e)
{
    struct got *g = arg;

    assert_true(g->n < EVENTS);
    g->event[g->n] = event_copy(e, "");
    assert_non_null(g->event[g->n]);
    g->n++;
}

static void got_drop(struct got *g)
{
    for (size_t i = 0; i < g->n; i++)
        event_drop(g->event[i]);
}

static const struct tenrec_event served = { .name = "add",
                                            .worker_name = "worker1",
                                            .thread_name = "tenrec-pool",
                                            .thread = 4711,
                                            .worker_id = 1,
                                            .caller_id = 0,
                                            .call_id = 99,
                                            .kind = TENREC_EVENT_SERVE,
                                            .status = TENREC_EINVAL,
                                            .start_ns = 1100,
                                            .duration_ns = 800,
                                            .run_ns = 700,
                                            .queue_ns = 100,
                                            .sent_bytes = 12,
                                            .received_bytes = 13 };

/* An answer of 42 with the spans of `add`, and of a record in it. */
static struct tenrec_msg *answer(uint32_t max)
{
    const struct tenrec_event record = { .name = "step",
                                         .worker_name = "worker1",
                                         .thread_name = "",
                                         .caller_id = -1,
                                         .call_id = -1,
                                         .kind = TENREC_EVENT_MARK,
                                         .start_ns = 1200,
                                         .duration_ns = 10,
                                         .run_ns = 10 };
    const struct tenrec_value v = tenrec_value_int(42);
    struct events *t = events_new(10);
    struct spans s = {
        .max = max, .arrival_ns = 1000, .end_ns = 2000, .served = &served, .events = t
    };
    struct tenrec_msg *msg;
    tenrec_error err;

    events_add(t, &record, "");
    events_close(t);
    assert_status(codec_write_value(&v, TENREC_MSG_RET, &msg, &err), &err);
    msg = spans_attach(msg, &s);
    events_drop(t);
    return msg;
}

/* Reads what lies behind the value of `msg`. */
static bool read_spans(struct tenrec_msg *msg, struct spans_head *head, struct got *g)
{
    size_t at;

    assert_true(codec_first_end(msg, &at));
    return spans_read_head((const char *)msg->payload + at, (size_t)msg->payload_len - at, head) &&
           spans_read_events(head, EVENTS, keep, g);
}

TEST(spans_come_back_unchanged)
{
    struct tenrec_msg *msg = answer(100000);
    struct got g = { 0 };
    const struct tenrec_event *e;
    struct tenrec_value *v;
    struct spans_head head;
    tenrec_error err;
    size_t at;

    assert_true(read_spans(msg, &head, &g));
    assert_int_equal(head.whole_ns, 1000);
    assert_int_equal(head.dropped, 0);
    assert_int_equal(g.n, 2);
    e = g.event[0];
    if (!e || !g.event[1]) {
        fail_msg("events are lost");
        return;
    }
    assert_string_equal(e->name, "add");
    assert_string_equal(e->worker_name, "worker1");
    assert_string_equal(e->thread_name, "tenrec-pool");
    assert_int_equal(e->thread, 4711);
    assert_int_equal(e->worker_id, 1);
    assert_int_equal(e->call_id, 99);
    assert_int_equal(e->kind, TENREC_EVENT_SERVE);
    assert_int_equal(e->status, TENREC_EINVAL);
    assert_int_equal(e->start_ns, 100); /* from the arrival */
    assert_int_equal(e->duration_ns, 800);
    assert_int_equal(e->run_ns, 700);
    assert_int_equal(e->queue_ns, 100);
    assert_int_equal(e->sent_bytes, 12);
    assert_int_equal(e->received_bytes, 13);
    assert_string_equal(g.event[1]->name, "step");
    assert_int_equal(g.event[1]->start_ns, 200);
    /* Faults count the value alone, and the value ends where it did. */
    assert_true(codec_first_end(msg, &at));
    assert_int_equal(msg->key_len, at);
    msg->payload_len = at;
    assert_status(codec_read_value(msg, &v, &err), &err);
    assert_int_equal(v->u.integer, 42);
    tenrec_value_drop(v);
    got_drop(&g);
    msg->release(msg);
}

TEST(spans_keep_the_tensors_of_their_answer)
{
    const int64_t length = 3;
    struct events *t = events_new(0);
    struct spans s = { .max = 1000, .served = &served, .events = t };
    struct tenrec_tensor *tensor;
    struct tenrec_value v, *back;
    struct tenrec_msg *msg;
    tenrec_error err;
    size_t at;

    assert_status(tenrec_tensor_new(TENREC_FLOAT32, 1, &length, &tensor, &err), &err);
    ((float *)tenrec_tensor_data(tensor))[2] = 7;
    v = tenrec_value_tensor(tensor);
    assert_status(codec_write_value(&v, TENREC_MSG_RET, &msg, &err), &err);
    msg = spans_attach(msg, &s);
    assert_true(codec_first_end(msg, &at));
    assert_true(at < msg->payload_len);
    msg->payload_len = at;
    assert_status(codec_read_value(msg, &back, &err), &err);
    assert_ptr_equal(back->u.tensor, tensor);
    tenrec_value_drop(back);
    msg->release(msg);
    tenrec_tensor_drop(tensor);
    events_drop(t);
}

TEST(spans_fit_into_the_requested_size)
{
    struct tenrec_msg *msg;
    struct spans_head head;
    size_t at, events, last = 2;

    for (uint32_t max = 200; max > 0; max--) {
        struct got g = { 0 };
        msg = answer(max);
        assert_true(codec_first_end(msg, &at));
        assert_true(msg->payload_len - at <= max);
        if (at < msg->payload_len) {
            assert_true(read_spans(msg, &head, &g));
            events = g.n;
            assert_int_equal(events + head.dropped, 2);
            assert_true(events <= last);
            last = events;
        }
        got_drop(&g);
        msg->release(msg);
    }
    assert_int_equal(last, 0);
}

TEST(spans_are_refused_when_a_byte_is_cut)
{
    struct tenrec_msg *msg = answer(100000);
    const size_t whole = (size_t)msg->payload_len;
    struct spans_head head;
    size_t at;

    assert_true(codec_first_end(msg, &at));
    for (size_t len = at; len < whole; len++) {
        struct got g = { 0 };
        char *copy = malloc(len - at + 1); /* so that a sanitizer sees its end */
        assert_non_null(copy);
        memcpy(copy, (const char *)msg->payload + at, len - at);
        assert_false(spans_read_head(copy, len - at, &head) &&
                     spans_read_events(&head, EVENTS, keep, &g));
        got_drop(&g);
        free(copy);
    }
    msg->release(msg);
}

/* An event with other numbers or texts; all is written with the shortest heads. */
struct forged {
    uint64_t items; /* of the event */
    const char *name;
    size_t name_len;
    int64_t number[13];
    uint64_t head_items, events;
    int64_t whole, dropped;
};

static struct forged fine(void)
{
    return (struct forged){ .items = 16, .name = "f", .name_len = 1, .head_items = 3, .events = 1 };
}

static bool reads(const struct forged *f)
{
    unsigned char bytes[8192];
    struct cbor_writer w = { bytes, bytes + sizeof bytes };
    struct got g = { 0 };
    struct spans_head head;
    bool ok;

    cbor_write_array(&w, f->head_items);
    cbor_write_int(&w, f->whole);
    cbor_write_int(&w, f->dropped);
    cbor_write_array(&w, f->events);
    cbor_write_array(&w, f->items);
    cbor_write_text(&w, f->name, f->name_len);
    cbor_write_text(&w, "w", 1);
    cbor_write_text(&w, "t", 1);
    for (size_t i = 0; i < 13; i++)
        cbor_write_int(&w, f->number[i]);
    for (uint64_t i = 16; i < f->items; i++)
        cbor_write_text(&w, "new", 3);
    ok = spans_read_head(bytes, (size_t)(w.at - bytes), &head) &&
         spans_read_events(&head, EVENTS, keep, &g);
    got_drop(&g);
    return ok;
}

TEST(spans_are_refused_when_a_field_cannot_be)
{
    static const struct {
        size_t field;
        int64_t value;
    } wrong[] = { { 0, 3 },     { 0, -1 },  { 1, -2 },  { 1, 32768 }, { 3, -2 },
                  { 3, 32768 }, { 5, 1 },   { 6, -1 },  { 7, -1 },    { 8, -1 },
                  { 9, -1 },    { 10, -1 }, { 11, -1 }, { 12, -1 } };
    char text[EVENT_NAME_MAX + 1];
    struct forged f = fine();

    assert_true(reads(&f));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        f = fine();
        f.number[wrong[i].field] = wrong[i].value;
        if (reads(&f))
            fail_msg("field %zu may be %lld", wrong[i].field, (long long)wrong[i].value);
    }
    memset(text, 'n', sizeof text);
    f = fine();
    f.name = text;
    f.name_len = EVENT_NAME_MAX;
    assert_true(reads(&f));
    f.name_len++;
    assert_false(reads(&f));
    f = fine();
    f.name = "a\0b";
    f.name_len = 3;
    assert_false(reads(&f));
}

TEST(spans_are_refused_when_their_frame_cannot_be)
{
    struct forged f = fine();

    f.head_items = 2;
    assert_false(reads(&f));
    f = fine();
    f.events = 2;
    assert_false(reads(&f));
    f = fine();
    f.events = 0; /* and one follows */
    assert_false(reads(&f));
    f = fine();
    f.items = 15;
    assert_false(reads(&f));
    f = fine();
    f.whole = -1;
    assert_false(reads(&f));
    f = fine();
    f.dropped = -1;
    assert_false(reads(&f));
}

TEST(spans_are_read_when_events_have_more_fields)
{
    struct forged f = fine();

    f.items = 19;
    assert_true(reads(&f));
}

TEST(spans_beyond_the_limit_are_counted)
{
    struct tenrec_msg *msg = answer(100000);
    struct got g = { 0 };
    struct spans_head head;
    size_t at;

    assert_true(codec_first_end(msg, &at));
    assert_true(
        spans_read_head((const char *)msg->payload + at, (size_t)msg->payload_len - at, &head));
    assert_true(spans_read_events(&head, 1, keep, &g));
    assert_int_equal(g.n, 1);
    assert_int_equal(head.dropped, 1);
    got_drop(&g);
    msg->release(msg);
}

/* ---- the call that asks -------------------------------------------------------- */

TEST(spans_are_asked_for_behind_the_key)
{
    struct tenrec_msg *plain, *asking;
    struct codec_call call;
    tenrec_error err;

    assert_status(codec_write_call(TENREC_MSG_CALL, "f", NULL, 0, 5, &(struct codec_extra){ 0 },
                                   &plain, &err),
                  &err);
    assert_status(codec_write_call(TENREC_MSG_CALL, "f", NULL, 0, 5,
                                   &(struct codec_extra){ .spans_max = 4096 }, &asking, &err),
                  &err);
    assert_int_equal(plain->key_len, asking->key_len);
    assert_memory_equal(plain->payload, asking->payload, plain->key_len);
    assert_status(codec_read_call(plain, &call, &err), &err);
    assert_int_equal(call.spans_max, 0);
    codec_call_finish(&call);
    assert_status(codec_read_call(asking, &call, &err), &err);
    assert_int_equal(call.spans_max, 4096);
    codec_call_finish(&call);
    plain->release(plain);
    asking->release(asking);
}

TEST(spans_are_refused_when_the_call_asks_for_no_number)
{
    static const char *const wrong[] = { "\xd9\xd9\xf7\x84\x61"
                                         "f\x80\xf6\xa1\x65"
                                         "spans\x20",
                                         "\xd9\xd9\xf7\x84\x61"
                                         "f\x80\xf6\xa1\x65"
                                         "spans\x61x",
                                         "\xd9\xd9\xf7\x84\x61"
                                         "f\x80\xf6\xa1\x65"
                                         "spans\x1b\x01\x01\x01\x01\x01\x01\x01\x01" };
    struct codec_call call;
    tenrec_error err;

    for (size_t i = 0; i < 3; i++) {
        size_t len = strlen(wrong[i]);
        struct tenrec_msg *msg = rpc_message_new(len, 0);
        assert_non_null(msg);
        memcpy(msg->payload, wrong[i], len);
        assert_int_equal(codec_read_call(msg, &call, &err), TENREC_EPROTOCOL);
        assert_text_has(err.text, "spans");
        msg->release(msg);
    }
}
