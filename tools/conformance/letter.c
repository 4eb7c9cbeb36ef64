/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/world.h"

#include <stdlib.h>

#define ALIGNED 64

struct letter {
    struct tenrec_msg msg;
    void (*released)(void *arg);
    void *arg;
    void *storage; /* of the tensors */
    int n_placed;
};

static void letter_release(struct tenrec_msg *msg)
{
    struct letter *l = (struct letter *)msg;

    if (l->released)
        l->released(l->arg);
    free(l->storage);
    free(msg->payload);
    free(msg->tensors);
    free(l);
}

struct tenrec_msg *letter_new(uint64_t payload_len, uint32_t n_tensors)
{
    struct letter *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->msg = (struct tenrec_msg){ .size = sizeof l->msg,
                                  .payload = malloc(payload_len + 1),
                                  .payload_len = payload_len,
                                  .n_tensors = n_tensors,
                                  .tensor_size = sizeof(struct tenrec_tensor_desc),
                                  .release = letter_release };
    l->msg.tensors = calloc((size_t)n_tensors + 1, sizeof(struct tenrec_tensor_desc));
    if (l->msg.payload && l->msg.tensors)
        return &l->msg;
    letter_release(&l->msg);
    return NULL;
}

void letter_on_release(struct tenrec_msg *msg, void (*fn)(void *arg), void *arg)
{
    struct letter *l = (struct letter *)msg;

    l->released = fn;
    l->arg = arg;
}

bool letter_is(const struct tenrec_msg *msg)
{
    return msg->release == letter_release;
}

int letter_count_place(struct tenrec_msg *msg, int more)
{
    return ((struct letter *)msg)->n_placed += more;
}

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

tenrec_status letter_place(struct tenrec_msg *msg, tenrec_error *err)
{
    struct letter *l = (struct letter *)msg;
    uint64_t total = 0;

    for (uint32_t i = 0; i < msg->n_tensors; i++)
        total += round_up(tenrec_msg_tensor(msg, i)->bytes);
    l->storage = aligned_alloc(ALIGNED, total ? total : ALIGNED);
    if (!l->storage)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for tensors of %llu bytes",
                           (unsigned long long)total);
    total = 0;
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        t->device = (struct tenrec_device){ TENREC_CPU, 0 };
        t->data = (char *)l->storage + total;
        total += round_up(t->bytes);
    }
    return TENREC_OK;
}
