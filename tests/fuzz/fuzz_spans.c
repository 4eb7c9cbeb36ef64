/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_spans.c - the spans behind an answer from a hostile peer.
 *
 * Input: the payload of an answer. The spans that can be read are written again
 * and must read the same. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "core/tensor/tensor.h"
#include "observe/profiler/spans_wire.h"
#include "rpc/value/codec.h"

enum { MOST = 100 };

static void must(bool true_always)
{
    if (!true_always)
        abort();
}

static void keep(void *arg, struct tenrec_event *e)
{
    events_add(arg, e, "");
}

/* The spans of an answer; false when they cannot be read. */
static bool read_spans(const struct tenrec_msg *msg, struct spans_head *head, struct events *t)
{
    size_t at;

    return codec_first_end(msg, &at) && at < msg->payload_len &&
           spans_read_head((const char *)msg->payload + at, (size_t)msg->payload_len - at, head) &&
           spans_read_events(head, MOST, keep, t);
}

static bool same(const struct tenrec_event *a, const struct tenrec_event *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->worker_name, b->worker_name) == 0 &&
           strcmp(a->thread_name, b->thread_name) == 0 && a->kind == b->kind &&
           a->worker_id == b->worker_id && a->caller_id == b->caller_id &&
           a->call_id == b->call_id && a->status == b->status && a->start_ns == b->start_ns &&
           a->duration_ns == b->duration_ns && a->run_ns == b->run_ns &&
           a->received_bytes == b->received_bytes;
}

static void write_again(const struct events *t, const struct spans_head *head)
{
    struct spans s = { .max = UINT32_MAX, .end_ns = head->whole_ns, .events = t };
    struct events *back = events_new(MOST + 1);
    struct tenrec_msg *msg = NULL;
    struct spans_head again;

    must(back && codec_write_value(NULL, TENREC_MSG_RET, &msg, NULL) == TENREC_OK);
    back->remote = true;
    s.served = t->event[0];
    msg = spans_attach(msg, &s);
    must(read_spans(msg, &again, back));
    must(again.whole_ns == head->whole_ns && back->n == (t->n + 1 > MOST ? MOST : t->n + 1));
    for (size_t i = 0; i < back->n; i++)
        must(same(back->event[i], t->event[i > 0 ? i - 1 : 0]));
    msg->release(msg);
    events_drop(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tenrec_msg *msg = rpc_message_new(len, 0);
    struct events *t = events_new(MOST);
    struct spans_head head;

    must(msg && t);
    t->remote = true;
    if (len > 0)
        memcpy(msg->payload, data, len);
    if (read_spans(msg, &head, t) && t->n > 0)
        write_again(t, &head);
    events_drop(t);
    msg->release(msg);
    return 0;
}
