/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - the memory of tensors: where they land, and how long the sender's and the receiver's
 * are in use. */
#include "conformance/agent_case.h"
#include "conformance/world.h"

#include <stdlib.h>

struct tenrec_msg *make_tensor_request(void *data, uint64_t bytes, struct tally *t)
{
    struct tenrec_msg *msg = make_request(1, "t", 1, 1, t);

    *msg->tensors = (struct tenrec_tensor_desc){ .data = data,
                                                 .bytes = bytes,
                                                 .dtype = { TENREC_DTYPE_UINT, 8, 1 },
                                                 .ndim = 1,
                                                 .device = { TENREC_CPU, 0 },
                                                 .target = { TENREC_CPU, 0 },
                                                 .shape = { (int64_t)bytes },
                                                 .strides = { 1 } };
    return msg;
}

CASE(large_tensors_land_where_the_receiver_says, "AG-26")
{
    const uint64_t bytes = 5000001;
    unsigned char *data = malloc(bytes), *memory = malloc(bytes);
    static struct tally t;
    struct tenrec_msg *msg;

    for (uint64_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(i * 31 + (i >> 10));
    b->memory = memory;
    send_msg(a, b->id, make_tensor_request(data, bytes, &t), &t);
    msg = await(b, 0, NULL);
    expect(msg->tensors->data == memory,
           "the tensor does not arrive in the memory that place gave");
    expect_bytes(memory, data, bytes, "the memory of the tensor");
    expect_becomes(atomic_load(&t.released) == 1, "the message of the sender is not released");
    free(data);
    free(memory);
}

struct spoilt {
    unsigned char *data;
    size_t bytes;
};

static void memory_spoil(void *arg)
{
    const struct spoilt *s = arg;

    memset(s->data, 0xee, s->bytes);
}

/* The sender changes the memory as soon as the message is released, as the owner of a region may.
 */
CASE(memory_of_a_released_message_is_not_read, "AG-40")
{
    static const size_t size[] = { 1000, 100000, 5000001 };
    static struct spoilt sent[3];
    static struct tally t;

    for (size_t i = 0; i < 3; i++) {
        struct tenrec_msg *msg;
        unsigned char *want = malloc(size[i]);
        sent[i] = (struct spoilt){ malloc(size[i]), size[i] };
        for (size_t k = 0; k < size[i]; k++)
            sent[i].data[k] = want[k] = (unsigned char)(k * 13 + (k >> 9));
        msg = make_tensor_request(sent[i].data, size[i], &t);
        letter_on_release(msg, memory_spoil, &sent[i]);
        send_msg(a, b->id, msg, &t);
        expect_bytes(await(b, i, NULL)->tensors->data, want, size[i],
                     "the tensor of %zu bytes, changed by its sender when it was released,",
                     size[i]);
        free(want);
    }
}

/* The receiver uses the memory for something else once it has the message. */
CASE(memory_of_a_delivered_message_is_not_written, "AG-41")
{
    const size_t bytes = 5000001;
    unsigned char *data = calloc(1, bytes), *memory = malloc(bytes), *want = malloc(bytes);
    static struct tally t;

    b->memory = memory;
    send_msg(a, b->id, make_tensor_request(data, bytes, &t), &t);
    await(b, 0, NULL);
    memset(memory, 0x11, bytes);
    memset(want, 0x11, bytes);
    send_ping(a, b->id, 7, &t); /* behind the last byte of the tensor */
    await(b, 1, NULL);
    expect_becomes(told(&t) == 2, "of 2 sends %d are done", told(&t));
    expect_bytes(memory, want, bytes, "the memory of the delivered tensor");
    free(data);
    free(memory);
    free(want);
}

CASE(a_message_without_memory_is_dropped_alone, "AG-26")
{
    static unsigned char data[100000];
    static struct tally t;

    atomic_store(&b->no_memory, true);
    send_msg(a, b->id, make_tensor_request(data, sizeof data, &t), &t);
    send_ping(a, b->id, 77, &t);
    expect_equal(await(b, 0, NULL)->id, 77, "the id of the request behind the one without memory");
    expect_becomes(told(&t) == 2 && atomic_load(&t.released) == 2,
                   "of 2 sends %d are done and %d released", told(&t), atomic_load(&t.released));
}
