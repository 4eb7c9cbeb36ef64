/* SPDX-License-Identifier: Apache-2.0 */
/* region_transfer.c - the messages that read and write regions. */
#include "core/base/memory.h"
#include "core/tensor/tensor.h"
#include "rpc/call/call.h"
#include "rpc/call/serve.h"
#include "rpc/region/bulk.h"
#include "rpc/region/region_copy.h"
#include "rpc/value/codec.h"
#include "rpc/value/value.h"

#include <stdlib.h>
#include <string.h>

enum {
    HEAD = 5, /* numbers before those of the parts */
    NUMBERS_MAX = HEAD + 2 * REGION_PARTS_MAX,
    PAYLOAD_MAX = 16 + 9 * NUMBERS_MAX
};

static void plain_release(void *plain)
{
    ((struct tenrec_msg *)plain)->release(plain);
}

/* Makes a message of a payload, and of `n` tensors (taken on success). */
static tenrec_status transfer_message(int32_t type, const struct tenrec_value *payload,
                                      struct tenrec_tensor *const *bytes, size_t n,
                                      struct tenrec_msg **ret, tenrec_error *err)
{
    struct payload_owner owner = { .drop = plain_release };
    struct tenrec_msg *plain, *msg;
    tenrec_status st = codec_write_value(payload, type, &plain, err);

    *ret = plain;
    if (st != TENREC_OK || n == 0)
        return st;
    owner.owner = plain;
    msg = rpc_message_new_around(&owner, plain->payload, plain->payload_len, (uint32_t)n);
    if (!msg) {
        plain->release(plain);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a message");
    }
    msg->type = type;
    for (uint32_t i = 0; i < n; i++)
        rpc_message_set_tensor(msg, i, bytes[i]);
    *ret = msg;
    return TENREC_OK;
}

tenrec_status region_message_new(int32_t type, const struct region_use *use,
                                 struct tenrec_tensor *const *bytes, struct tenrec_msg **ret,
                                 tenrec_error *err)
{
    const uint64_t head[HEAD] = { use->life, use->number, use->generation, use->key[0],
                                  use->key[1] };
    struct tenrec_value item[NUMBERS_MAX], array;
    tenrec_status st;

    for (size_t i = 0; i < HEAD; i++)
        item[i] = tenrec_value_int((int64_t)head[i]);
    for (size_t i = 0; i < use->n; i++) {
        item[HEAD + 2 * i] = tenrec_value_int((int64_t)use->part[i].offset);
        item[HEAD + 2 * i + 1] = tenrec_value_int((int64_t)use->part[i].bytes);
    }
    array = tenrec_value_array(item, HEAD + 2 * use->n);
    st = transfer_message(type, &array, bytes, bytes ? use->n : 0, ret, err);
    if (st == TENREC_OK)
        (*ret)->key_len = (uint32_t)(*ret)->payload_len;
    return st;
}

/* ---- at the owner ---------------------------------------------------------------- */

static tenrec_status transfer_numbers(const struct tenrec_value *v, struct region_use *ret,
                                      tenrec_error *err)
{
    const struct tenrec_value *item = v->u.array;

    if (v->type != TENREC_VALUE_ARRAY || v->n < HEAD + 2 || v->n > NUMBERS_MAX || (v->n - HEAD) % 2)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "malformed message: expected %d numbers, and two "
                           "for each of at most %d parts",
                           HEAD, REGION_PARTS_MAX);
    for (size_t i = 0; i < v->n; i++)
        if (item[i].type != TENREC_VALUE_INT)
            return tenrec_fail(err, TENREC_EPROTOCOL, "malformed message: item %zu is not a number",
                               i);
    ret->life = (uint64_t)item[0].u.integer;
    ret->number = (uint64_t)item[1].u.integer;
    ret->generation = (uint64_t)item[2].u.integer;
    ret->key[0] = (uint64_t)item[3].u.integer;
    ret->key[1] = (uint64_t)item[4].u.integer;
    ret->n = (v->n - HEAD) / 2;
    for (size_t i = 0; i < ret->n; i++) {
        ret->part[i].offset = (uint64_t)item[HEAD + 2 * i].u.integer;
        ret->part[i].bytes = (uint64_t)item[HEAD + 2 * i + 1].u.integer;
    }
    return TENREC_OK;
}

/* Reads what `msg` asks for. `carries`: it has a tensor for each part, else none. */
static tenrec_status transfer_read(tenrec_peer from, const struct tenrec_msg *msg, bool carries,
                                   struct region_use *ret, tenrec_error *err)
{
    struct tenrec_value *v = NULL;
    tenrec_status st;

    if (from < 0)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "only members of the group read and write regions");
    if (msg->payload_len > PAYLOAD_MAX)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "malformed message: %llu bytes, expected at most "
                           "%d",
                           (unsigned long long)msg->payload_len, PAYLOAD_MAX);
    st = codec_read_value(msg, &v, err);
    if (st == TENREC_OK)
        st = transfer_numbers(v, ret, err);
    tenrec_value_drop(v);
    if (st == TENREC_OK && msg->n_tensors != (carries ? ret->n : 0))
        st = tenrec_fail(err, TENREC_EPROTOCOL, "malformed message: %u tensors, expected %zu",
                         msg->n_tensors, carries ? ret->n : 0);
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

/* A request whose bytes are being copied from, or to, memory of a device. */
struct transfer_copy {
    struct region_copy copy; /* first */
    tenrec_peer from;
    struct tenrec_msg *msg, *answer;
};

static void transfer_copied(struct region_copy *c, bool entered, const tenrec_error *why)
{
    struct transfer_copy *t = (struct transfer_copy *)(void *)c;

    if (t->answer && (why || !entered)) {
        t->answer->release(t->answer);
        t->answer = NULL;
    }
    if (entered)
        transfer_end_request(c->w, t->from, t->msg, t->answer, why);
    else
        t->msg->release(t->msg);
    free(t);
}

/* As transfer_end_request, with an answer, once the bytes of `pin` are where they are used. */
static void transfer_end_copied(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg,
                                struct tenrec_msg *answer, const struct tenrec_tensor *pin,
                                bool to_device)
{
    struct transfer_copy *t;
    tenrec_error why;
    size_t n;
    struct region_bytes *bytes = region_pin_copies(pin, &n);

    if (!bytes) {
        transfer_end_request(w, from, msg, answer, NULL);
        return;
    }
    t = memory_new(1, sizeof *t);
    if (t) {
        t->copy = (struct region_copy){
            .w = w, .bytes = bytes, .n = n, .to_device = to_device, .done = transfer_copied
        };
        t->from = from;
        t->msg = msg;
        t->answer = answer;
        region_copy_begin(&t->copy);
        return;
    }
    memory_fail(&why);
    answer->release(answer);
    transfer_end_request(w, from, msg, NULL, &why);
}

static void read_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    struct tenrec_tensor *bytes[REGION_PARTS_MAX];
    struct tenrec_msg *answer = NULL;
    struct region_use use;
    tenrec_error why;
    tenrec_status st = transfer_read(from, msg, false, &use, &why);

    if (st == TENREC_OK)
        st = region_pin(w, from, &use, TENREC_REGION_READ, bytes, &why);
    if (st == TENREC_OK) {
        st = transfer_message(TENREC_MSG_BULK_READ_RET, NULL, bytes, use.n, &answer, &why);
        if (st != TENREC_OK) {
            answer = NULL;
            while (use.n > 0)
                tenrec_tensor_drop(bytes[--use.n]);
        }
    }
    if (answer)
        transfer_end_copied(w, from, msg, answer, bytes[0], false);
    else
        transfer_end_request(w, from, msg, NULL, &why);
}

/* The bytes of a repeated message are received outside of the region. */
static tenrec_status write_into(struct tenrec_worker *w, tenrec_peer from,
                                const struct tenrec_msg *msg, struct dispatch_into *ret,
                                tenrec_error *err)
{
    struct region_use use;
    bool repeated;
    tenrec_status st = transfer_read(from, msg, true, &use, err);

    if (st == TENREC_OK)
        st = region_writes_note(*region_table_of(w), from, msg, &repeated, err);
    if (st != TENREC_OK || repeated)
        return st;
    st = region_pin(w, from, &use, TENREC_REGION_WRITE, ret->tensor, err);
    ret->n = st == TENREC_OK ? use.n : 0;
    return st;
}

static void write_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    const bool placed = region_is_pin(rpc_message_owner(msg, 0));
    struct tenrec_msg *answer = NULL;
    tenrec_error why;

    if (!placed && region_writes_have(*region_table_of(w), from, msg)) {
        msg->release(msg); /* the first one is answered */
        return;
    }
    if (!placed)
        tenrec_fail(&why, TENREC_EPROTOCOL, "malformed message: a write without its bytes");
    else if (transfer_message(TENREC_MSG_BULK_WRITE_RET, NULL, NULL, 0, &answer, &why) != TENREC_OK)
        answer = NULL;
    if (answer)
        transfer_end_copied(w, from, msg, answer, rpc_message_owner(msg, 0), true);
    else
        transfer_end_request(w, from, msg, NULL, &why);
}

/* ---- at the reader ----------------------------------------------------------------------- */

static tenrec_status read_into(struct tenrec_worker *w, tenrec_peer from,
                               const struct tenrec_msg *msg, struct dispatch_into *ret,
                               tenrec_error *err)
{
    struct tenrec_tensor *first = call_into(w, from, msg);
    tenrec_status st = TENREC_OK;

    if (first)
        st = bulk_into(first, msg->n_tensors, ret, err);
    tenrec_tensor_drop(first);
    return st;
}

/* Bytes that were not placed in the caller's memory leave the request without them: bulk.c. */
static void read_answered(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    struct tenrec_tensor *first = call_into(w, from, msg);
    const bool taken = first && bulk_arrived(w, from, first, msg);

    tenrec_tensor_drop(first);
    if (!taken)
        call_answered(w, from, msg);
}

const struct dispatch_handler region_messages[] = {
    { TENREC_MSG_BULK_READ, read_arrived, NULL },
    { TENREC_MSG_BULK_WRITE, write_arrived, write_into },
    { TENREC_MSG_BULK_READ_RET, read_answered, read_into },
    { 0 },
};
