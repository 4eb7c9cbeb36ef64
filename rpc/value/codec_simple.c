/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/value/codec.h"

#include "core/backend/backend.h"
#include "core/base/fail.h"
#include "core/base/text.h"
#include "core/tensor/tensor.h"
#include "rpc/value/cbor_writer.h"
#include "rpc/value/codec_walk.h"

#include <stdlib.h>
#include <string.h>
#include <tenrec/future.h>
#include <tenrec/message.h>

#define WRITE_MAX 600 /* bytes of a payload: the room of a recycled message */

/* ---- writing ------------------------------------------------------------------ */

/* An upper bound of the bytes of the arguments; more than WRITE_MAX if one is not simple. */
static size_t room_of(const struct tenrec_value *args, size_t n, uint32_t *ret_tensors)
{
    const size_t no = WRITE_MAX + 1;
    size_t room = n * CBOR_HEAD_MAX;
    uint32_t flags = 0;

    if (n >= CBOR_LOW_1)
        return no;
    for (size_t i = 0; i < n && room <= WRITE_MAX; i++) {
        const struct tenrec_value *v = &args[i];

        flags |= v->flags;
        switch (v->type) {
        case TENREC_VALUE_NIL:
        case TENREC_VALUE_BOOL:
        case TENREC_VALUE_INT:
        case TENREC_VALUE_DOUBLE:
            break;
        case TENREC_VALUE_TENSOR:
            if (!v->u.tensor)
                return no;
            room += CBOR_HEAD_MAX; /* of the tag */
            ++*ret_tensors;
            break;
        case TENREC_VALUE_TEXT:
        case TENREC_VALUE_BYTES:
            if (v->n > WRITE_MAX || (v->n && !v->u.bytes))
                return no;
            if (v->type == TENREC_VALUE_TEXT && utf8_span(v->u.text, (size_t)v->n) != v->n)
                return no;
            room += (size_t)v->n;
            break;
        default:
            return no;
        }
    }
    return flags ? no : room; /* codec_write_call refuses them */
}

/* Returns false if the tensor cannot be sent as it is. */
static bool set_tensor(struct tenrec_msg *msg, uint32_t index, struct tenrec_tensor *t)
{
    struct tenrec_tensor *sent;

    if (tensor_to_send(t, &sent, NULL) != TENREC_OK)
        return false;
    rpc_message_set_tensor(msg, index, sent);
    return true;
}

/* A writer behind the first `n` bytes that begin a call. */
CBOR_INLINE struct cbor_writer writer_of(struct tenrec_msg *msg, size_t room, size_t n)
{
    unsigned char *begin = msg->payload;

    memcpy(begin, codec_call_begin, n);
    return (struct cbor_writer){ begin + n, begin + room };
}

/* Writes the name of the function, and behind it zeros, for which the heads that follow have room:
 * so the copy is checked by whole words. Nearly all names are ASCII. Returns false if the name is
 * not UTF-8. */
CBOR_INLINE bool write_name(struct cbor_writer *w, const char *name, size_t len)
{
    uint64_t eight, all = 0;

    cbor_write_head(w, CBOR_MAJOR_TEXT, len);
    memcpy(w->at, name, len);
    memset(w->at + len, 0, sizeof eight);
    for (size_t i = 0; i < len; i += sizeof eight) {
        memcpy(&eight, w->at + i, sizeof eight);
        all |= eight;
    }
    w->at += len;
    return !(all & UINT64_C(0x8080808080808080)) || utf8_span(name, len) == len;
}

CBOR_INLINE void write_trace(struct cbor_writer *w, const struct trace_context *trace)
{
    cbor_write_data(w, codec_trace_begin, sizeof codec_trace_begin);
    cbor_write_data(w, trace, sizeof *trace);
}

struct tenrec_msg *codec_simple_write(int32_t type, const char *function,
                                      const struct tenrec_value *args, size_t n,
                                      int64_t remaining_ms, const struct trace_context *trace)
{
    const size_t len = strlen(function);
    uint32_t tensors = 0;
    size_t room = n ? room_of(args, n, &tensors) : 0;
    struct tenrec_msg *msg;
    struct cbor_writer w;
    bool good;

    /* Heads of the name, of the arguments, and of the time; the options. */
    room += sizeof codec_call_begin + CBOR_HEAD_MAX + len + 1 + CBOR_HEAD_MAX + 1;
    if (trace)
        room += sizeof codec_trace_begin + sizeof *trace;
    if (len > WRITE_MAX || room > WRITE_MAX)
        return NULL;
    msg = tensors ? rpc_message_new(room, tensors) : message_new(room, 0);
    tensors = 0;
    if (!msg)
        return NULL;
    msg->type = type;
    w = writer_of(msg, room, sizeof codec_call_begin);
    good = write_name(&w, function, len);
    *w.at++ = CBOR_BYTE(CBOR_MAJOR_ARRAY, n);
    for (size_t i = 0; i < n && good; i++)
        if (!codec_write_single(&w, &args[i])) {
            cbor_write_tag(&w, CODEC_TAG_TENSOR);
            cbor_write_int(&w, tensors);
            good = set_tensor(msg, tensors++, args[i].u.tensor);
        }
    if (!good) {
        msg->release(msg);
        return NULL;
    }
    msg->key_len = (uint32_t)(w.at - (unsigned char *)msg->payload);
    if (remaining_ms == TENREC_TIMEOUT_NONE)
        cbor_write_nil(&w);
    else
        cbor_write_int(&w, remaining_ms < 0 ? 0 : remaining_ms);
    if (trace)
        write_trace(&w, trace);
    else
        cbor_write_map(&w, 0);
    msg->payload_len = (uint64_t)(w.at - (unsigned char *)msg->payload);
    return msg;
}

struct tenrec_msg *codec_simple_write_value(const struct tenrec_value *value, int32_t type)
{
    struct tenrec_msg *msg;
    struct cbor_writer w;

    if (value->flags || (value->type != TENREC_VALUE_INT && value->type != TENREC_VALUE_DOUBLE &&
                         value->type != TENREC_VALUE_BOOL))
        return NULL; /* the long way refuses or writes it */
    msg = message_new(CODEC_BEGIN_SIZE + CBOR_HEAD_MAX, 0);
    if (!msg)
        return NULL;
    msg->type = type;
    w = writer_of(msg, CODEC_BEGIN_SIZE + CBOR_HEAD_MAX, CODEC_BEGIN_SIZE);
    codec_write_single(&w, value);
    msg->payload_len = (uint64_t)(w.at - (unsigned char *)msg->payload);
    return msg;
}

tenrec_status codec_write_value_refs(const struct tenrec_value *value, int32_t type,
                                     struct codec_refs *refs, struct tenrec_msg **ret,
                                     tenrec_error *err)
{
    *ret = value ? codec_simple_write_value(value, type) : NULL;
    return *ret ? TENREC_OK : codec_write_any_value(value, type, refs, ret, err);
}

/* ---- reading ------------------------------------------------------------------ */

/* Only tensors with an owner are simple. *at is behind the tag. */
CBOR_INLINE bool read_tensor(const unsigned char **at, const unsigned char *end,
                             const struct tenrec_msg *msg, struct tenrec_value *to)
{
    struct tenrec_tensor *t;
    uint64_t n;

    if (*at == end || **at >> 5 != CBOR_MAJOR_UINT || !cbor_read_head(at, end, &n) ||
        n >= msg->n_tensors)
        return false;
    t = rpc_message_owner(msg, (uint32_t)n);
    if (!t)
        return false;
    to->type = TENREC_VALUE_TENSOR;
    to->u.tensor = tenrec_tensor_share(t);
    return true;
}

/* Returns false if the value is not simple, or malformed. Field by field: a value on the stack
 * would cost a frame that is checked. */
CBOR_INLINE bool read_value(const unsigned char **at, const unsigned char *end,
                            const struct tenrec_msg *msg, struct tenrec_value *to)
{
    const unsigned char first = **at;
    uint64_t n;

    if (!cbor_read_head(at, end, &n))
        return false;
    to->type = TENREC_VALUE_INT;
    to->flags = 0;
    to->n = 0;
    to->u.room[0] = to->u.room[1] = 0;
    switch (first >> 5) {
    case CBOR_MAJOR_UINT:
        to->u.integer = (int64_t)n;
        return n <= INT64_MAX;
    case CBOR_MAJOR_NEGINT:
        to->u.integer = ~(int64_t)n;
        return n <= INT64_MAX;
    case CBOR_MAJOR_BYTES:
        if (n > (size_t)(end - *at))
            return false;
        to->type = TENREC_VALUE_BYTES;
        to->n = n;
        to->u.bytes = *at;
        *at += n;
        return true;
    case CBOR_MAJOR_TAG:
        return n == CODEC_TAG_TENSOR && read_tensor(at, end, msg, to);
    case CBOR_MAJOR_SIMPLE:
        break;
    default: /* texts are copied, to add a NUL */
        return false;
    }
    if (first == CBOR_DOUBLE) {
        to->type = TENREC_VALUE_DOUBLE;
        to->u.number = cbor_double_of(n);
        return true;
    }
    if (first == CBOR_NIL) {
        to->type = TENREC_VALUE_NIL;
        return true;
    }
    to->type = TENREC_VALUE_BOOL;
    to->u.boolean = first == CBOR_BYTE(CBOR_MAJOR_SIMPLE, CBOR_SIMPLE_TRUE);
    return to->u.boolean || first == CBOR_BYTE(CBOR_MAJOR_SIMPLE, CBOR_SIMPLE_FALSE);
}

/* Reads the one option that a simple call has. */
static bool read_trace(const unsigned char *at, const unsigned char *end, struct codec_call *ret)
{
    if ((size_t)(end - at) != sizeof codec_trace_begin + sizeof ret->trace ||
        memcmp(at, codec_trace_begin, sizeof codec_trace_begin) != 0)
        return false;
    memcpy(&ret->trace, at + sizeof codec_trace_begin, sizeof ret->trace);
    return ret->traced = trace_context_valid(&ret->trace);
}

/* Reads the remaining time, and no options or the trace. */
CBOR_INLINE bool read_limits(const unsigned char *at, const unsigned char *end,
                             struct codec_call *ret)
{
    uint64_t n;

    if (at == end)
        return false;
    if (*at == CBOR_NIL) {
        ret->remaining_ms = TENREC_TIMEOUT_NONE;
        at++;
    } else {
        if (*at >> 5 != CBOR_MAJOR_UINT || !cbor_read_head(&at, end, &n) || n > INT64_MAX)
            return false;
        ret->remaining_ms = (int64_t)n;
    }
    ret->traced = false;
    if (likely(end - at == 1 && *at == CBOR_BYTE(CBOR_MAJOR_MAP, 0)))
        return true;
    return read_trace(at, end, ret);
}

tenrec_status codec_read_head(const struct tenrec_msg *msg, struct codec_head *ret,
                              tenrec_error *err)
{
    const unsigned char *begin = msg->payload, *at = begin, *end = begin + msg->payload_len;
    uint64_t n;

    if (msg->type == TENREC_MSG_REMOTE_CALL || msg->payload_len <= sizeof codec_call_begin ||
        memcmp(at, codec_call_begin, sizeof codec_call_begin) != 0)
        return codec_read_any_head(msg, ret, err);
    at += sizeof codec_call_begin;
    if (*at >> 5 != CBOR_MAJOR_TEXT || !cbor_read_head(&at, end, &n) || n > (size_t)(end - at) ||
        utf8_span((const char *)at, (size_t)n) != n)
        return codec_read_any_head(msg, ret, err);
    ret->function = (const char *)at;
    ret->function_len = (size_t)n;
    ret->args_at = (size_t)(at - begin) + (size_t)n;
    return TENREC_OK;
}

/* Returns false if the call is not simple; *ret may have changed. */
CBOR_INLINE bool read_args(const struct tenrec_msg *msg, const struct codec_head *head,
                           struct codec_call *ret)
{
    const unsigned char *at = msg->payload, *end = at + msg->payload_len;
    struct tenrec_value *to = (struct tenrec_value *)(void *)ret->room;
    bool tensors = false;
    size_t n, i = 0;

    at += head->args_at;
    if (at == end)
        return false;
    n = (unsigned char)(*at++ - CBOR_BYTE(CBOR_MAJOR_ARRAY, 0)); /* large if no short array */
    if (n > sizeof ret->room / (sizeof(struct tenrec_value)))
        return false;
    for (; i < n && at != end && read_value(&at, end, msg, &to[i]); i++)
        tensors |= to[i].type == TENREC_VALUE_TENSOR;
    if (i < n || !read_limits(at, end, ret)) {
        if (tensors)
            values_finish(to, i);
        return false;
    }
    ret->args = n > 0 ? to : NULL;
    ret->n = n;
    ret->spans_max = 0;
    ret->heap = NULL;
    ret->tensors = tensors;
    ret->borrowed = 0;
    ret->refers = false;
    return true;
}

tenrec_status codec_read_args(const struct tenrec_msg *msg, const struct codec_head *head,
                              struct codec_call *ret, tenrec_error *err)
{
    if (msg->type == TENREC_MSG_REMOTE_CALL)
        ret->creation = head->creation;
    return read_args(msg, head, ret) ? TENREC_OK : codec_read_any_args(msg, head, ret, err);
}

void codec_call_finish(struct codec_call *call)
{
    if (call->tensors && call->n > call->borrowed)
        values_finish(call->args + call->borrowed, call->n - call->borrowed);
    free(call->heap);
    call->args = NULL;
    call->n = 0;
    call->heap = NULL;
    call->tensors = false;
}

struct tenrec_value *codec_simple_read_value(const struct tenrec_msg *msg)
{
    const unsigned char *at = msg->payload, *end = at + msg->payload_len;
    struct tenrec_value *value;

    if (msg->payload_len <= CODEC_BEGIN_SIZE || memcmp(at, codec_call_begin, CODEC_BEGIN_SIZE) != 0)
        return NULL;
    at += CODEC_BEGIN_SIZE;
    if (*at >> 5 != CBOR_MAJOR_UINT && *at >> 5 != CBOR_MAJOR_NEGINT &&
        *at >> 5 != CBOR_MAJOR_SIMPLE)
        return NULL;
    value = malloc(sizeof *value);
    if (value && read_value(&at, end, msg, value) && at == end)
        return value;
    free(value);
    return NULL;
}

bool codec_is_nil(const struct tenrec_msg *msg)
{
    const unsigned char *begin = msg->payload;

    return msg->payload_len == CODEC_BEGIN_SIZE + 1 && begin[CODEC_BEGIN_SIZE] == CBOR_NIL &&
           memcmp(begin, codec_call_begin, CODEC_BEGIN_SIZE) == 0;
}

tenrec_status codec_read_value_refs(const struct tenrec_msg *msg, struct tenrec_value **ret,
                                    bool *ret_refers, tenrec_error *err)
{
    struct tenrec_value *value = codec_simple_read_value(msg);

    if (!value)
        return codec_read_any_value(msg, ret, ret_refers, err);
    *ret = value;
    if (ret_refers)
        *ret_refers = false;
    return TENREC_OK;
}

tenrec_status codec_read_value(const struct tenrec_msg *msg, struct tenrec_value **ret,
                               tenrec_error *err)
{
    return codec_read_value_refs(msg, ret, NULL, err);
}
