/* SPDX-License-Identifier: Apache-2.0 */
/* region_transfer.c - the messages that read and write regions. */
#include "rpc/region/regions.h"

#include "core/tensor/shared_memory.h"
#include "core/tensor/tensor.h"
#include "rpc/call/call.h"
#include "rpc/call/serve.h"
#include "rpc/region/bulk.h"
#include "rpc/value/codec.h"
#include "rpc/value/value.h"

#include <string.h>

enum { NUMBERS = 7, PAYLOAD_MAX = 128 };

static void plain_release(void *plain)
{
    ((struct tenrec_msg *)plain)->release(plain);
}

/* Makes a message of a payload, and of `bytes` (taken on success; NULL: none). */
static tenrec_status transfer_message(int32_t type, const struct tenrec_value *payload,
                                      struct tenrec_tensor *bytes, struct tenrec_msg **ret,
                                      tenrec_error *err)
{
    struct payload_owner owner = { .drop = plain_release };
    struct tenrec_msg *plain, *msg;
    tenrec_status st = codec_write_value(payload, type, &plain, err);

    *ret = plain;
    if (st != TENREC_OK || !bytes)
        return st;
    owner.owner = plain;
    msg = rpc_message_new_around(&owner, plain->payload, plain->payload_len, 1);
    if (!msg) {
        plain->release(plain);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a message");
    }
    msg->type = type;
    rpc_message_set_tensor(msg, 0, bytes);
    *ret = msg;
    return TENREC_OK;
}

tenrec_status region_message_new(int32_t type, const struct region_use *use,
                                 struct tenrec_tensor *bytes, struct tenrec_msg **ret,
                                 tenrec_error *err)
{
    const uint64_t number[NUMBERS] = { use->life,   use->number, use->generation, use->key[0],
                                       use->key[1], use->offset, use->bytes };
    struct tenrec_value item[NUMBERS], array;
    tenrec_status st;

    for (size_t i = 0; i < NUMBERS; i++)
        item[i] = tenrec_value_int((int64_t)number[i]);
    array = tenrec_value_array(item, NUMBERS);
    st = transfer_message(type, &array, bytes, ret, err);
    if (st == TENREC_OK)
        (*ret)->key_len = (uint32_t)(*ret)->payload_len;
    return st;
}

/* ---- at the owner ---------------------------------------------------------------- */

static tenrec_status transfer_numbers(const struct tenrec_value *v, struct region_use *ret,
                                      tenrec_error *err)
{
    uint64_t n[NUMBERS];

    if (v->type != TENREC_VALUE_ARRAY || v->n != NUMBERS)
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed message: expected %d numbers",
                           NUMBERS);
    for (size_t i = 0; i < NUMBERS; i++) {
        if (v->u.array[i].type != TENREC_VALUE_INT)
            return tenrec_fail(err, TENREC_EPROTOCOL, "malformed message: item %zu is not a number",
                               i);
        n[i] = (uint64_t)v->u.array[i].u.integer;
    }
    *ret = (struct region_use){ n[0], n[1], n[2], { n[3], n[4] }, n[5], n[6] };
    return TENREC_OK;
}

/* Reads what `msg` asks for, which has `n_tensors` tensors. */
static tenrec_status transfer_read(tenrec_peer from, const struct tenrec_msg *msg,
                                   uint32_t n_tensors, struct region_use *ret, tenrec_error *err)
{
    struct tenrec_value *v = NULL;
    tenrec_status st;

    if (from < 0)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "only members of the group read and write regions");
    if (msg->payload_len > PAYLOAD_MAX || msg->n_tensors != n_tensors)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "malformed message: %llu bytes and %u tensors, expected at most %d and "
                           "%u",
                           (unsigned long long)msg->payload_len, msg->n_tensors, PAYLOAD_MAX,
                           n_tensors);
    st = codec_read_value(msg, &v, err);
    if (st == TENREC_OK)
        st = transfer_numbers(v, ret, err);
    tenrec_value_drop(v);
    return st;
}

/* Ends a request, with an answer or an error; takes both messages. */
static void transfer_end_request(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg,
                                 struct tenrec_msg *answer, const tenrec_error *why)
{
    const struct tenrec_route route = msg->route;
    const int64_t id = msg->id;

    msg->release(msg); /* with its pin: what is answered has ended */
    if (answer)
        answer_send(w, from, id, &route, answer, NULL);
    else
        answer_error(w, from, id, &route, true, why);
}

/* The bytes to send: those of the region, or a copy where the receiver would map the memory and
 * read it after the pin has ended. */
static tenrec_status read_bytes(struct tenrec_tensor *pinned, struct tenrec_tensor **ret,
                                tenrec_error *err)
{
    struct shared_block *shared = NULL;
    tenrec_status st;

    if (shared_memory_is_there())
        shared = shared_block_at(tenrec_tensor_data(pinned), tenrec_tensor_bytes(pinned));
    if (!shared) {
        *ret = pinned;
        return TENREC_OK;
    }
    st = tenrec_tensor_copy(pinned, ret, err);
    shared_block_drop(shared);
    tenrec_tensor_drop(pinned);
    return st;
}

static void read_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    struct tenrec_tensor *bytes = NULL;
    struct tenrec_msg *answer = NULL;
    struct region_use use;
    tenrec_error why;
    tenrec_status st = transfer_read(from, msg, 0, &use, &why);

    if (st == TENREC_OK)
        st = region_pin(w, from, &use, TENREC_REGION_READ, &bytes, &why);
    if (st == TENREC_OK)
        st = read_bytes(bytes, &bytes, &why);
    if (st == TENREC_OK) {
        st = transfer_message(TENREC_MSG_BULK_READ_RET, NULL, bytes, &answer, &why);
        if (st != TENREC_OK) {
            tenrec_tensor_drop(bytes);
            answer = NULL;
        }
    }
    transfer_end_request(w, from, msg, answer, &why);
}

static tenrec_status write_into(struct tenrec_worker *w, tenrec_peer from,
                                const struct tenrec_msg *msg, struct tenrec_tensor **ret,
                                tenrec_error *err)
{
    struct region_use use;
    tenrec_status st = transfer_read(from, msg, 1, &use, err);

    return st == TENREC_OK ? region_pin(w, from, &use, TENREC_REGION_WRITE, ret, err) : st;
}

static void write_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    struct tenrec_msg *answer = NULL;
    tenrec_error why;

    /* A message without a tensor was not placed. */
    if (msg->n_tensors != 1 || !region_is_pin(rpc_message_owner(msg, 0)))
        tenrec_fail(&why, TENREC_EPROTOCOL, "malformed message: a write without its bytes");
    else if (transfer_message(TENREC_MSG_BULK_WRITE_RET, NULL, NULL, &answer, &why) != TENREC_OK)
        answer = NULL;
    transfer_end_request(w, from, msg, answer, &why);
}

/* ---- at the reader ----------------------------------------------------------------------- */

/* Bytes that were not placed in the caller's memory leave the entry without them: bulk.c. */
static void read_answered(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    struct tenrec_tensor *into = call_into(w, from, msg);

    if (into && msg->n_tensors == 1 && rpc_message_owner(msg, 0) == into)
        bulk_arrived(into);
    tenrec_tensor_drop(into);
    call_answered(w, from, msg);
}

const struct dispatch_handler region_messages[] = {
    { TENREC_MSG_BULK_READ, read_arrived, NULL },
    { TENREC_MSG_BULK_WRITE, write_arrived, write_into },
    { TENREC_MSG_BULK_READ_RET, read_answered, NULL },
    { 0 },
};
