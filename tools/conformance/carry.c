/* SPDX-License-Identifier: Apache-2.0 */
/* carry.c - types, ids, payloads and tensors arrive as they were sent. */
#include "conformance/agent_case.h"
#include "conformance/world.h"

#include "core/base/clock.h"

#include <inttypes.h>
#include <stdlib.h>

CASE(send_delivers_both_ways, "AG-10 AG-24")
{
    static struct tally t;
    struct tenrec_msg *msg;
    tenrec_peer from = -7;

    expect_of("AG-10");
    send_ping(a, b->id, 5, &t);
    msg = await(b, 0, &from);
    expect_equal(from, a->id, "the sender, as deliver names it,");
    expect_equal(msg->type, TENREC_MSG_CALL, "the type of the request");
    expect_equal(msg->id, 5, "the id of the request");
    expect_equal(msg->payload_len, 4, "the length of the payload");
    expect_bytes(msg->payload, "ping", 4, "the payload");
    expect_equal(msg->n_tensors, 0, "the number of tensors");
    send_ping(b, a->id, 6, &t);
    msg = await(a, a == b, &from);
    expect_equal(from, b->id, "the sender, as deliver names it,");
    expect_equal(msg->id, 6, "the id of the request");
    expect_becomes(atomic_load(&t.ok) == 2, "%d of 2 sends have succeeded", atomic_load(&t.ok));
}

CASE(types_and_ids_are_untouched, "AG-10 AG-24")
{
    static const int32_t type[] = { 0x100, 0x10f, 0x117, 0x180, 0x1fe, 0x133 };
    static const int32_t answer[] = { 0x203, 0x210, 0x237, 0x283, 0x2ff, 0x24d };
    static const int64_t id[] = { 0, -1, INT64_MAX, INT64_MIN, 255, 1LL << 40 };
    const size_t n = sizeof type / sizeof type[0];
    static struct tally t;

    expect_of("AG-10");
    for (size_t i = 0; i < n; i++) {
        struct tenrec_msg *msg = make_request(id[i], "x", 1, 0, &t);
        msg->type = type[i];
        send_msg(a, b->id, msg, &t);
    }
    for (size_t i = 0; i < n; i++) {
        struct tenrec_msg *msg = await(b, i, NULL), *reply = make_request(id[i], "y", 1, 0, &t);
        expect_equal(msg->type, type[i], "the type of request %zu", i);
        expect(msg->id == id[i], "the id of request %zu is %" PRId64 ", expected %" PRId64, i,
               msg->id, id[i]);
        reply->type = answer[i];
        reply->route = msg->route;
        send_msg(b, a->id, reply, &t);
    }
    for (size_t i = 0; i < n; i++) {
        struct tenrec_msg *msg = await(a, a == b ? n + i : i, NULL);
        expect_equal(msg->type, answer[i], "the type of answer %zu", i);
        expect(msg->id == id[i], "the id of answer %zu is %" PRId64 ", expected %" PRId64, i,
               msg->id, id[i]);
    }
}

/* A backend need not carry these two, which are for the agents of one chain; a wrapper that
 * replaces a message keeps them. */
CASE(key_and_deadline_are_kept_or_dropped, "AG-10 AG-24")
{
    const uint64_t deadline_ns = clock_deadline_ms(UINT64_C(3600000));
    static struct tally t;
    struct tenrec_msg *msg = make_request(7, "name and arguments", 18, 0, &t);
    struct spy_seen sent;

    msg->key_len = 4;
    msg->deadline_ns = deadline_ns;
    send_msg(a, b->id, msg, &t);
    msg = await(b, 0, NULL);
    expect_of("AG-24");
    expect(msg->key_len == 0 || msg->key_len == 4, "key_len of the request is %u, expected 4 or 0",
           msg->key_len);
    expect(msg->deadline_ns == 0 || msg->deadline_ns == deadline_ns,
           "deadline_ns of the request is %" PRIu64 ", expected %" PRIu64 " or 0", msg->deadline_ns,
           deadline_ns);
    expect_of("AG-10");
    if (spy_saw(7, &sent)) {
        expect_equal(sent.key_len, 4, "key_len of the request that is sent inwards");
        expect_equal(sent.deadline_ns, deadline_ns,
                     "deadline_ns of the request that is sent inwards");
    }
}

CASE(payloads_of_all_sizes_arrive, "AG-10 AG-24")
{
    static const size_t size[] = { 0, 1, 127, 4095, 4096, 65537, 9u << 20, 0 };
    const size_t n = sizeof size / sizeof size[0];
    unsigned char *bytes = malloc(9u << 20);
    static struct tally t;

    expect_of("AG-10");
    for (size_t i = 0; i < 9u << 20; i++)
        bytes[i] = (unsigned char)(i * 7 + (i >> 12));
    for (size_t i = 0; i < n; i++)
        send_msg(a, b->id, make_request((int64_t)i, bytes, size[i], 0, &t), &t);
    for (size_t i = 0; i < n; i++) {
        struct tenrec_msg *msg = await(b, i, NULL);
        expect_equal(msg->payload_len, size[i], "the length of payload %zu", i);
        expect_bytes(msg->payload, bytes, size[i], "payload %zu", i);
    }
    expect_becomes(atomic_load(&t.ok) == (int)n, "%d of %zu sends have succeeded",
                   atomic_load(&t.ok), n);
    free(bytes);
}

/* Views of one storage of 1024 bytes; the last one has no element. */
static const struct tenrec_tensor_desc views[] = {
    { .bytes = 1024,
      .dtype = { TENREC_DTYPE_FLOAT, 32, 1 },
      .ndim = 2,
      .shape = { 16, 16 },
      .strides = { 16, 1 } },
    { .bytes = 1024,
      .byte_offset = 8,
      .dtype = { TENREC_DTYPE_INT, 64, 1 },
      .ndim = 3,
      .flags = 0,
      .shape = { 2, 3, 4 },
      .strides = { 1, 2, 6 } },
    { .bytes = 1024, .byte_offset = 1020, .dtype = { TENREC_DTYPE_FLOAT, 32, 1 }, .ndim = 0 },
    { .bytes = 1024,
      .dtype = { TENREC_DTYPE_BFLOAT, 16, 1 },
      .ndim = 1,
      .flags = TENREC_TENSOR_REQUIRES_GRAD,
      .shape = { 256 },
      .strides = { 2 } },
    { .bytes = 1024,
      .byte_offset = 3,
      .dtype = { TENREC_DTYPE_BOOL, 8, 1 },
      .ndim = 1,
      .shape = { 5 },
      .strides = { 1 } },
    { .bytes = 1024,
      .dtype = { TENREC_DTYPE_COMPLEX, 64, 1 },
      .ndim = 4,
      .shape = { 2, 2, 2, 2 },
      .strides = { 8, 4, 2, 1 } },
    { .bytes = 0,
      .dtype = { TENREC_DTYPE_UINT, 8, 1 },
      .ndim = 2,
      .shape = { 0, 7 },
      .strides = { 7, 1 } },
};
#define N_VIEWS (sizeof views / sizeof views[0])

CASE(tensors_keep_all_their_fields, "AG-10 AG-24 AG-26")
{
    static unsigned char storage[N_VIEWS][1024];
    static struct tally t;
    struct tenrec_msg *msg = make_request(1, "args", 4, N_VIEWS, &t);
    uint32_t begin;

    expect_of("AG-10");
    for (uint32_t i = 0; i < N_VIEWS; i++) {
        struct tenrec_tensor_desc *d = tenrec_msg_tensor(msg, i);
        *d = views[i];
        d->device.kind = d->target.kind = TENREC_CPU;
        d->data = storage[i];
        for (size_t k = 0; k < sizeof storage[i]; k++)
            storage[i][k] = (unsigned char)(k * 3 + i);
    }
    send_msg(a, b->id, msg, &t);
    msg = await(b, 0, NULL);
    expect_equal(msg->n_tensors, N_VIEWS, "the number of tensors");
    expect_of("AG-26");
    expect_equal(atomic_load(&b->placed), 1, "the number of calls of place");
    begin = atomic_load(&b->placed_begin);
    expect_bytes(&begin, "args", sizeof begin, "the payload when its tensors are placed");
    expect_of("AG-10");
    for (uint32_t i = 0; i < N_VIEWS; i++) {
        const struct tenrec_tensor_desc *d = tenrec_msg_tensor(msg, i), *want = &views[i];
        expect_equal(d->bytes, want->bytes, "'bytes' of tensor %u", i);
        expect_equal(d->byte_offset, want->byte_offset, "'byte_offset' of tensor %u", i);
        expect_bytes(&d->dtype, &want->dtype, sizeof d->dtype, "the dtype of tensor %u", i);
        expect_equal(d->ndim, want->ndim, "'ndim' of tensor %u", i);
        expect_equal(d->flags, want->flags, "'flags' of tensor %u", i);
        expect_equal(d->device.kind, TENREC_CPU, "the device kind of tensor %u", i);
        for (uint32_t k = 0; k < d->ndim; k++) {
            expect_equal(d->shape[k], want->shape[k], "shape[%u] of tensor %u", k, i);
            expect_equal(d->strides[k], want->strides[k], "strides[%u] of tensor %u", k, i);
        }
        expect(d->data != storage[i], "tensor %u arrives in the memory of its sender", i);
        expect_bytes(d->data, storage[i], d->bytes, "the memory of tensor %u", i);
    }
    expect_becomes(atomic_load(&t.ok) == 1, "the send has not succeeded");
}

static struct tenrec_msg *answer_to(const struct tenrec_msg *request, struct tenrec_msg *msg)
{
    msg->type = TENREC_MSG_RET;
    msg->id = request->id;
    msg->route = request->route;
    return msg;
}

CASE(messages_are_marked_when_their_senders_prove_themselves, "AG-24")
{
    static unsigned char data[100000];
    const uint32_t mark = world_mark(&w);
    static struct tally t;
    struct tenrec_msg *msg;

    send_ping(a, b->id, 1, &t);
    send_msg(a, b->id, make_tensor_request(data, sizeof data, &t), &t);
    for (size_t i = 0; i < 2; i++) {
        msg = await(b, i, NULL);
        expect_equal(msg->flags & TENREC_MSG_PROVED, mark, "TENREC_MSG_PROVED of request %zu", i);
        send_msg(b, a->id,
                 answer_to(msg, i ? make_tensor_request(data, sizeof data, &t)
                                  : make_request(0, "x", 1, 0, &t)),
                 &t);
    }
    for (size_t i = 0; i < 2; i++) {
        msg = await(a, a == b ? 2 + i : i, NULL);
        expect_equal(msg->flags & TENREC_MSG_PROVED, mark, "TENREC_MSG_PROVED of answer %zu", i);
    }
    expect_equal(atomic_load(&b->placed_flags) & TENREC_MSG_PROVED, mark,
                 "TENREC_MSG_PROVED of the request in place");
    expect_equal(atomic_load(&a->placed_flags) & TENREC_MSG_PROVED, mark,
                 "TENREC_MSG_PROVED of the answer in place");
}
