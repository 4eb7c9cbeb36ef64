/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tensor/tensor.h"

#include <stdatomic.h>
#include <string.h>

struct reserved {
    struct tenrec_msg msg; /* first: the public part */
    atomic_flag used;
    unsigned char payload[RESERVE_BYTES];
};

static struct reserved reserve[RESERVE_MESSAGES]; /* zeroed: unused */

static void reserve_release(struct tenrec_msg *msg)
{
    atomic_flag_clear(&((struct reserved *)msg)->used);
}

struct tenrec_msg *reserve_message(const void *payload, size_t n)
{
    struct reserved *r = reserve;

    if (n > RESERVE_BYTES)
        return NULL;
    while (r < reserve + RESERVE_MESSAGES && atomic_flag_test_and_set(&r->used))
        r++;
    if (r == reserve + RESERVE_MESSAGES)
        return NULL;
    memcpy(r->payload, payload, n);
    r->msg = (struct tenrec_msg){
        .size = sizeof r->msg,
        .payload = r->payload,
        .payload_len = n,
        .tensor_size = sizeof(struct tenrec_tensor_desc),
        .release = reserve_release,
    };
    return &r->msg;
}
