/* SPDX-License-Identifier: Apache-2.0 */
#include "core/backend/backend.h"

#include "core/backend/account.h"
#include "core/base/fail.h"
#include "core/base/memory.h"
#include "core/base/recycle.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A recycled block has this many bytes; larger messages are freed. */
#define BLOCK_BYTES 1024

struct message {
    struct tenrec_msg msg;          /* first: the public part */
    size_t bytes;                   /* of this block */
    struct tenrec_account *account; /* owns a share; NULL: nothing is charged */
    uint64_t charged;               /* bytes, to the account */
    struct tenrec_account_limits limits;
};

/* Frees a block that is large or is not kept. After many of these the heap has
 * pages to return to the system. */
__attribute__((noinline)) static void block_free(struct message *m)
{
    static _Thread_local size_t freed; /* bytes, up to HEAP_STEP */

    freed += m->bytes;
    free(m);
    if (freed >= HEAP_STEP) {
        freed = 0;
        heap_freed();
    }
}

/* Returns a block from the depot or from malloc. */
static struct message *block_find(size_t bytes)
{
    const bool small = bytes <= BLOCK_BYTES;
    struct message *m = small ? recycle_pop(RECYCLE_MESSAGES) : NULL;

    if (small && !m)
        m = recycle_fetch(RECYCLE_MESSAGES);
    if (m)
        return m;
    if (small)
        bytes = BLOCK_BYTES;
    m = malloc(bytes);
    if (m)
        m->bytes = bytes;
    return m;
}

/* Returns NULL for a message of another maker, such as a wrapper. */
static struct message *message_of(const struct tenrec_msg *msg)
{
    return msg->size == sizeof(struct message) ? (struct message *)(uintptr_t)msg : NULL;
}

void message_carry(struct tenrec_msg *msg, struct tenrec_account *a, uint64_t n,
                   const struct tenrec_account_limits *limits)
{
    struct message *m = message_of(msg);

    if (!m) {
        account_give(a, n);
        return;
    }
    m->account = account_share(a);
    m->charged = n;
    m->limits = *limits;
}

tenrec_status message_charge(const struct tenrec_msg *msg, uint64_t n, tenrec_error *err)
{
    struct message *m = message_of(msg);
    tenrec_status st;

    if (likely(!m || !m->account))
        return TENREC_OK;
    st = account_take(m->account, n, &m->limits, err);
    if (st == TENREC_OK)
        m->charged += n;
    return st;
}

__attribute__((noinline)) static void message_settle(struct message *m)
{
    account_give(m->account, m->charged);
    account_close(m->account);
    m->account = NULL;
}

static void message_release(struct tenrec_msg *msg)
{
    struct message *m = (struct message *)msg;

    if (unlikely(m->account != NULL))
        message_settle(m);
    if (m->bytes != BLOCK_BYTES || !recycle_push(RECYCLE_MESSAGES, m))
        block_free(m);
}

/* Field by field: the compiler would clear the whole struct by an instruction that takes
 * longer to start than these take in all. */
static void message_fill(struct message *m, void *payload, uint64_t payload_len)
{
    struct tenrec_msg *msg = &m->msg;

    msg->size = sizeof *m; /* as if the private part were fields of a later version */
    msg->type = 0;
    msg->id = 0;
    msg->deadline_ns = 0;
    msg->payload = payload;
    msg->payload_len = payload_len;
    msg->key_len = 0;
    msg->flags = 0;
    msg->n_tensors = 0;
    msg->tensor_size = sizeof(struct tenrec_tensor_desc);
    msg->tensors = NULL;
    msg->route = (struct tenrec_route){ 0 };
    msg->release = message_release;
    for (size_t i = 0; i < sizeof msg->reserved / sizeof msg->reserved[0]; i++)
        msg->reserved[i] = 0;
    m->account = NULL;
}

#define HEAD_BYTES                                                                                 \
    ((sizeof(struct message) + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t))

/* For messages with tensors or a large payload, or when the thread's cache is empty. */
__attribute__((noinline)) static struct tenrec_msg *message_make(uint64_t payload_len,
                                                                 uint32_t n_tensors)
{
    const size_t descs = (size_t)n_tensors * sizeof(struct tenrec_tensor_desc);
    struct message *m;

    if (payload_len > SIZE_MAX / 4 || descs > SIZE_MAX / 4)
        return NULL;
    m = block_find(HEAD_BYTES + descs + (size_t)payload_len);
    if (!m)
        return NULL;
    message_fill(m, (char *)m + HEAD_BYTES + descs, payload_len);
    if (n_tensors) {
        m->msg.n_tensors = n_tensors;
        m->msg.tensors = (void *)((char *)m + HEAD_BYTES);
        memset(m->msg.tensors, 0, descs);
    }
    return &m->msg;
}

struct tenrec_msg *message_new(uint64_t payload_len, uint32_t n_tensors)
{
    struct message *m;

    if (n_tensors > 0 || payload_len > BLOCK_BYTES - HEAD_BYTES ||
        !(m = recycle_pop(RECYCLE_MESSAGES)))
        return message_make(payload_len, n_tensors);
    message_fill(m, (char *)m + HEAD_BYTES, payload_len);
    return &m->msg;
}
