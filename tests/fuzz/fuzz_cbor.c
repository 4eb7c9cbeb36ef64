/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_cbor.c - payloads of calls, answers and errors from a hostile peer.
 *
 * Input: a byte whose lowest two bits say how many tensors the message has,
 * for each of them 5 bytes of its descriptor, then the payload. What can be
 * read is written again and must read the same. */
#include "amplification.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/future.h>
#include <tenrec/message.h>
#include <tenrec/region.h>

#include "core/tensor/tensor.h"
#include "rpc/value/codec_walk.h"

#define DESC_BYTES 5

/* A small number of either sign, or a huge one. */
static int64_t number_of(uint8_t b)
{
    if (b >= 0xf0)
        return INT64_MAX >> (b & 0x0f);
    return (int8_t)b;
}

static void desc_of(const uint8_t *data, char *storage, struct tenrec_tensor_desc *d)
{
    d->data = storage;
    d->bytes = data[0];
    d->byte_offset = (uint64_t)number_of(data[1]);
    d->dtype.code = data[2] & 15;
    d->dtype.bits = data[2] & 0x80 ? 32 : 8;
    d->dtype.lanes = 1;
    d->ndim = data[2] >> 4 & 3;
    d->device.kind = TENREC_CPU;
    for (uint32_t i = 0; i < d->ndim; i++) {
        d->shape[i] = number_of(data[3]) >> i;
        d->strides[i] = number_of(data[4]);
    }
}

static struct tenrec_msg *message_of(const uint8_t *data, size_t len, char *storage)
{
    const uint32_t n = data[0] & 3;
    const size_t head = 1 + (size_t)n * DESC_BYTES;
    struct tenrec_msg *msg;

    if (len < head)
        return NULL;
    msg = rpc_message_new(len - head, n);
    if (!msg)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        desc_of(data + 1 + (size_t)i * DESC_BYTES, storage, tenrec_msg_tensor(msg, i));
    if (len > head)
        memcpy(msg->payload, data + head, len - head);
    return msg;
}

/* Of the payload, since fuzz_measure. A nil of one byte is a value of 32 bytes. A tensor that has
 * no owner, as here, is copied for each 5 bytes that name it. */
static void made_little(const struct tenrec_msg *msg)
{
    const struct fuzz_bound bytes = { msg->n_tensors ? 160 : 40, 4096 };

    fuzz_expect_made((size_t)msg->payload_len, bytes, (struct fuzz_bound){ 0, 0 });
}

static void must(bool true_always)
{
    if (!true_always)
        abort();
}

static bool same(const struct tenrec_value *a, const struct tenrec_value *b)
{
    if (a->type != b->type || a->n != b->n)
        return false;
    switch (a->type) {
    case TENREC_VALUE_TEXT:
        return memcmp(a->u.text, b->u.text, (size_t)a->n + 1) == 0;
    case TENREC_VALUE_BYTES:
        return a->n == 0 || memcmp(a->u.bytes, b->u.bytes, (size_t)a->n) == 0;
    case TENREC_VALUE_ARRAY:
        for (uint64_t i = 0; i < a->n; i++)
            if (!same(&a->u.array[i], &b->u.array[i]))
                return false;
        return true;
    case TENREC_VALUE_MAP:
        for (uint64_t i = 0; i < a->n; i++)
            if (strcmp(a->u.map[i].key, b->u.map[i].key) != 0 ||
                !same(&a->u.map[i].value, &b->u.map[i].value))
                return false;
        return true;
    case TENREC_VALUE_RREF:
        return memcmp(a->u.bytes, b->u.bytes, sizeof(struct rref_fork)) == 0;
    case TENREC_VALUE_OBJECT:
        return strcmp(a->u.map->key, b->u.map->key) == 0 &&
               same(&a->u.map->value, &b->u.map->value);
    case TENREC_VALUE_REGION:
        return memcmp(a->u.region, b->u.region, sizeof *a->u.region) == 0;
    case TENREC_VALUE_TENSOR:
        return tenrec_tensor_count(a->u.tensor) == tenrec_tensor_count(b->u.tensor);
    case TENREC_VALUE_BOOL:
        return a->u.boolean == b->u.boolean;
    case TENREC_VALUE_DOUBLE:
        return isnan(a->u.number) ? isnan(b->u.number) : a->u.number == b->u.number;
    default:
        return a->type == TENREC_VALUE_NIL || a->u.integer == b->u.integer;
    }
}

/* Copies of tensors with strides of 0 may be much larger than the input. */
static bool small(const struct tenrec_value *v)
{
    if (v->type == TENREC_VALUE_TENSOR)
        return tenrec_tensor_bytes(v->u.tensor) < 1 << 20;
    for (uint64_t i = 0; i < v->n; i++) {
        if (v->type == TENREC_VALUE_ARRAY && !small(&v->u.array[i]))
            return false;
        if (v->type == TENREC_VALUE_MAP && !small(&v->u.map[i].value))
            return false;
        if (v->type != TENREC_VALUE_ARRAY && v->type != TENREC_VALUE_MAP)
            return true;
    }
    return true;
}

/* References as they were read stand for themselves: marks them as taken, or
 * takes the mark back. Returns false for objects, which no encoder here supports, and for
 * references that stand for their values, which only calls have. */
static bool mark(const struct tenrec_value *v, bool taken)
{
    bool all = v->type != TENREC_VALUE_OBJECT && !(v->flags & CODEC_DEREF);

    if (v->type == TENREC_VALUE_RREF && taken)
        ((struct tenrec_value *)(uintptr_t)v)->flags &= ~CODEC_UNTAKEN;
    else if (v->type == TENREC_VALUE_RREF)
        ((struct tenrec_value *)(uintptr_t)v)->flags |= CODEC_UNTAKEN;
    for (uint64_t i = 0; v->type == TENREC_VALUE_ARRAY && i < v->n; i++)
        all = mark(&v->u.array[i], taken) && all;
    for (uint64_t i = 0; v->type == TENREC_VALUE_MAP && i < v->n; i++)
        all = mark(&v->u.map[i].value, taken) && all;
    return all;
}

static tenrec_status fork_again(struct codec_refs *refs, struct tenrec_rref *r, bool deref,
                                struct rref_fork *ret, tenrec_error *err)
{
    (void)refs, (void)deref, (void)err;
    *ret = *(const struct rref_fork *)(const void *)r;
    return TENREC_OK;
}

static void read_refs(const struct tenrec_msg *msg)
{
    struct codec_refs refs = { .fork = fork_again };
    struct tenrec_value *first = NULL, *second = NULL;
    struct tenrec_msg *again = NULL;
    bool refers = false;
    tenrec_status st;

    (void)codec_may_refer(msg);
    fuzz_measure();
    st = codec_read_value_refs(msg, &first, &refers, NULL);
    made_little(msg);
    if (st != TENREC_OK)
        return;
    if (refers && small(first) && mark(first, true)) {
        must(codec_write_value_refs(first, TENREC_MSG_RET, &refs, &again, NULL) == TENREC_OK);
        mark(first, false);
        must(codec_read_value_refs(again, &second, &refers, NULL) == TENREC_OK && refers);
        must(same(first, second));
        codec_refs_finish(&refs);
        again->release(again);
    }
    mark(first, false);
    tenrec_value_drop(first);
    tenrec_value_drop(second);
}

static void read_value(const struct tenrec_msg *msg)
{
    struct tenrec_value *first = NULL, *second = NULL, *copy = NULL;
    struct tenrec_msg *again = NULL;
    tenrec_status st;

    fuzz_measure();
    st = codec_read_value(msg, &first, NULL);
    made_little(msg);
    if (st != TENREC_OK)
        return;
    must(tenrec_value_copy(first, &copy, NULL) == TENREC_OK && same(first, copy));
    if (small(first)) {
        must(codec_write_value(first, TENREC_MSG_RET, &again, NULL) == TENREC_OK);
        must(codec_read_value(again, &second, NULL) == TENREC_OK);
        must(same(first, second));
        again->release(again);
    }
    tenrec_value_drop(first);
    tenrec_value_drop(second);
    tenrec_value_drop(copy);
}

/* The short way and the long one read alike. */
static void read_both_ways(const struct tenrec_msg *msg)
{
    struct codec_call call, any;
    struct codec_head head;
    tenrec_error err, any_err;
    tenrec_status st;

    if (codec_read_head(msg, &head, NULL) != TENREC_OK)
        return;
    fuzz_measure();
    st = codec_read_args(msg, &head, &call, &err);
    made_little(msg);
    must(codec_read_any_args(msg, &head, &any, &any_err) == st);
    if (st != TENREC_OK) {
        must(strcmp(err.text, any_err.text) == 0);
        return;
    }
    must(call.remaining_ms == any.remaining_ms && call.n == any.n);
    must(call.spans_max == any.spans_max && call.refers == any.refers);
    must(call.tensors == any.tensors && call.traced == any.traced);
    must(!call.traced || memcmp(&call.trace, &any.trace, sizeof any.trace) == 0);
    for (size_t i = 0; i < call.n; i++)
        must(same(&call.args[i], &any.args[i]));
    codec_call_finish(&any);
    codec_call_finish(&call);
}

static void read_call(const struct tenrec_msg *msg)
{
    struct codec_call call;
    struct tenrec_value list, *copy = NULL;

    read_both_ways(msg);
    if (codec_read_call(msg, &call, NULL) != TENREC_OK)
        return;
    list = tenrec_value_array(call.args, call.n);
    must(call.remaining_ms >= 0);
    if (!call.refers)
        must(tenrec_value_copy(&list, &copy, NULL) == TENREC_OK && same(&list, copy));
    codec_call_finish(&call);
    tenrec_value_drop(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char storage[256] = { 0 };
    struct tenrec_msg *msg;
    tenrec_error why;

    if (len == 0)
        return 0;
    msg = message_of(data, len, storage);
    if (!msg)
        return 0;
    read_value(msg);
    read_refs(msg);
    read_call(msg);
    msg->type = TENREC_MSG_REMOTE_CALL;
    read_call(msg);
    codec_read_error(msg, &why);
    must(why.code != TENREC_OK && memchr(why.text, '\0', sizeof why.text));
    msg->release(msg);
    return 0;
}
