/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/codec_simple.h"

#include "rpc/codec_walk.h"
#include "rpc/message.h"
#include "rpc/tensor.h"
#include "rpc/utf8.h"

#include <endian.h>
#include <string.h>
#include <tenrec/future.h>

#define CALL_ITEMS 4
#define LONG_HEAD_SIZE 9 /* the longest */
#define WRITE_MAX 600    /* bytes of a payload: what a message that is used again has room for */

/* Tag 55799 and the array that a call is. */
static const unsigned char beginning[] = { 0xd9, 0xd9, 0xf7, ITEM_MAJOR_ARRAY << 5 | CALL_ITEMS };

#define NIL (ITEM_MAJOR_SIMPLE << 5 | ITEM_SIMPLE_NIL)
#define NO_OPTIONS (ITEM_MAJOR_MAP << 5)
#define DOUBLE (ITEM_MAJOR_SIMPLE << 5 | 27)

/* ---- writing ------------------------------------------------------------------ */

/* There is room: that was counted before. */
static inline unsigned char *put_head(unsigned char *at, enum item_major major, uint64_t n)
{
    const unsigned high = (unsigned)major << 5;

    if (n < ITEM_LONG_HEAD) {
        at[0] = (unsigned char)(high | n);
        return at + 1;
    }
    if (n <= UINT8_MAX) {
        at[0] = (unsigned char)(high | ITEM_LONG_HEAD);
        at[1] = (unsigned char)n;
        return at + 2;
    }
    if (n <= UINT16_MAX) {
        at[0] = (unsigned char)(high | (ITEM_LONG_HEAD + 1));
        memcpy(at + 1, &(uint16_t){ htobe16((uint16_t)n) }, 2);
        return at + 3;
    }
    if (n <= UINT32_MAX) {
        at[0] = (unsigned char)(high | (ITEM_LONG_HEAD + 2));
        memcpy(at + 1, &(uint32_t){ htobe32((uint32_t)n) }, 4);
        return at + 5;
    }
    at[0] = (unsigned char)(high | (ITEM_LONG_HEAD + 3));
    memcpy(at + 1, &(uint64_t){ htobe64(n) }, 8);
    return at + LONG_HEAD_SIZE;
}

static inline unsigned char *put_data(unsigned char *at, enum item_major major, const void *data,
                                      size_t n)
{
    at = put_head(at, major, n);
    if (n)
        memcpy(at, data, n);
    return at + n;
}

static bool is_text(const void *text, size_t n)
{
    return utf8_span(text, n) == n;
}

/* At least the bytes that the arguments take; more than WRITE_MAX when they are
 * not simple. */
static size_t room_of(const struct tenrec_value *args, size_t n, uint32_t *ret_tensors)
{
    const size_t no = WRITE_MAX + 1;
    size_t room = n * LONG_HEAD_SIZE;

    if (n >= ITEM_LONG_HEAD)
        return no;
    for (size_t i = 0; i < n && room <= WRITE_MAX; i++) {
        const struct tenrec_value *v = &args[i];

        switch (v->type) {
        case TENREC_VALUE_NIL:
        case TENREC_VALUE_BOOL:
        case TENREC_VALUE_INT:
        case TENREC_VALUE_DOUBLE:
            break;
        case TENREC_VALUE_TENSOR:
            if (!v->u.tensor)
                return no;
            room += LONG_HEAD_SIZE; /* of the tag */
            ++*ret_tensors;
            break;
        case TENREC_VALUE_TEXT:
        case TENREC_VALUE_BYTES:
            if (v->n > WRITE_MAX || (v->n && !v->u.bytes))
                return no;
            if (v->type == TENREC_VALUE_TEXT && !is_text(v->u.text, (size_t)v->n))
                return no;
            room += (size_t)v->n;
            break;
        default:
            return no;
        }
    }
    return room;
}

/* NULL: it cannot be sent as it is. */
static unsigned char *put_tensor(unsigned char *at, struct tenrec_msg *msg, uint32_t index,
                                 struct tenrec_tensor *t)
{
    struct tenrec_tensor *sent;

    if (tensor_to_send(t, &sent, NULL) != TENREC_OK)
        return NULL;
    rpc_message_set_tensor(msg, index, sent);
    at = put_head(at, ITEM_MAJOR_TAG, CODEC_TAG_TENSOR);
    return put_head(at, ITEM_MAJOR_UINT, index);
}

static inline unsigned char *put_value(unsigned char *at, const struct tenrec_value *v)
{
    int64_t i = v->u.integer;
    uint64_t bits;

    switch (v->type) {
    case TENREC_VALUE_BOOL:
        return put_head(at, ITEM_MAJOR_SIMPLE, v->u.boolean ? ITEM_SIMPLE_TRUE : ITEM_SIMPLE_FALSE);
    case TENREC_VALUE_INT:
        return put_head(at, i < 0 ? ITEM_MAJOR_NEGINT : ITEM_MAJOR_UINT,
                        (uint64_t)(i < 0 ? ~i : i));
    case TENREC_VALUE_DOUBLE:
        memcpy(&bits, &v->u.number, sizeof bits);
        bits = htobe64(bits);
        *at = DOUBLE;
        memcpy(at + 1, &bits, sizeof bits);
        return at + ITEM_DOUBLE_SIZE;
    case TENREC_VALUE_TEXT:
        return put_data(at, ITEM_MAJOR_TEXT, v->u.text, (size_t)v->n);
    case TENREC_VALUE_BYTES:
        return put_data(at, ITEM_MAJOR_BYTES, v->u.bytes, (size_t)v->n);
    default:
        *at = NIL;
        return at + 1;
    }
}

struct tenrec_msg *codec_simple_write(int32_t type, const char *function,
                                      const struct tenrec_value *args, size_t n,
                                      int64_t remaining_ms)
{
    const size_t len = strlen(function);
    uint32_t tensors = 0;
    size_t room = n ? room_of(args, n, &tensors) : 0;
    struct tenrec_msg *msg;
    unsigned char *at;

    /* Heads of the name, of the arguments, and of the time; the options. */
    room += sizeof beginning + LONG_HEAD_SIZE + len + 1 + LONG_HEAD_SIZE + 1;
    if (len > WRITE_MAX || room > WRITE_MAX || !is_text(function, len))
        return NULL;
    msg = rpc_message_new(room, tensors);
    tensors = 0;
    if (!msg)
        return NULL;
    msg->type = type;
    at = msg->payload;
    memcpy(at, beginning, sizeof beginning);
    at = put_data(at + sizeof beginning, ITEM_MAJOR_TEXT, function, len);
    *at++ = (unsigned char)(ITEM_MAJOR_ARRAY << 5 | n);
    for (size_t i = 0; i < n; i++) {
        if (args[i].type != TENREC_VALUE_TENSOR) {
            at = put_value(at, &args[i]);
            continue;
        }
        at = put_tensor(at, msg, tensors++, args[i].u.tensor);
        if (!at) { /* the long way says why */
            msg->release(msg);
            return NULL;
        }
    }
    msg->key_len = (uint32_t)(at - (unsigned char *)msg->payload);
    if (remaining_ms == TENREC_TIMEOUT_NONE)
        *at++ = NIL;
    else
        at = put_head(at, ITEM_MAJOR_UINT, remaining_ms < 0 ? 0 : (uint64_t)remaining_ms);
    *at++ = NO_OPTIONS;
    msg->payload_len = (uint64_t)(at - (unsigned char *)msg->payload);
    return msg;
}

/* ---- reading ------------------------------------------------------------------ */

struct cursor {
    const unsigned char *at, *end;
    const struct tenrec_msg *msg;
    bool tensors; /* there were some */
};

/* The number of the head at the cursor, of up to two bytes behind the first. False:
 * it is longer, or cut. */
static inline bool take_head(struct cursor *c, uint64_t *ret)
{
    const unsigned char *at = c->at;
    const unsigned low = at[0] & 0x1f;

    if (low < ITEM_LONG_HEAD) {
        *ret = low;
        c->at = at + 1;
        return true;
    }
    if (low == ITEM_LONG_HEAD && c->end - at >= 2) {
        *ret = at[1];
        c->at = at + 2;
        return true;
    }
    if (low == ITEM_LONG_HEAD + 1 && c->end - at >= 3) {
        *ret = (uint64_t)at[1] << 8 | at[2];
        c->at = at + 3;
        return true;
    }
    return false;
}

/* The cursor is before the end, here and in what follows. */
static inline bool take_data(struct cursor *c, const char **ret, size_t *ret_n)
{
    uint64_t n;

    if (!take_head(c, &n) || n > (uint64_t)(c->end - c->at))
        return false;
    *ret = (const char *)c->at;
    *ret_n = (size_t)n;
    c->at += n;
    return true;
}

static inline bool take_double(struct cursor *c, struct tenrec_value *to)
{
    uint64_t bits;
    double number;

    if (c->end - c->at < ITEM_DOUBLE_SIZE)
        return false;
    memcpy(&bits, c->at + 1, sizeof bits);
    bits = be64toh(bits);
    memcpy(&number, &bits, sizeof number);
    *to = tenrec_double(number);
    c->at += ITEM_DOUBLE_SIZE;
    return true;
}

/* Of tensors those that keep their memory alive themselves. */
static bool take_tensor(struct cursor *c, struct tenrec_value *to)
{
    struct tenrec_tensor *t;
    uint64_t n;

    if (!take_head(c, &n) || n != CODEC_TAG_TENSOR || c->at == c->end ||
        *c->at >> 5 != ITEM_MAJOR_UINT || !take_head(c, &n) || n >= c->msg->n_tensors)
        return false;
    t = rpc_message_owner(c->msg, (uint32_t)n);
    if (!t)
        return false;
    *to = tenrec_tensor(tenrec_tensor_share(t));
    c->tensors = true;
    return true;
}

static inline bool take_value(struct cursor *c, struct tenrec_value *to)
{
    const unsigned first = c->at[0];
    const char *data;
    uint64_t n;
    size_t len;

    switch (first >> 5) {
    case ITEM_MAJOR_UINT:
        if (!take_head(c, &n))
            return false;
        *to = tenrec_int((int64_t)n);
        return true;
    case ITEM_MAJOR_NEGINT:
        if (!take_head(c, &n))
            return false;
        *to = tenrec_int(~(int64_t)n);
        return true;
    case ITEM_MAJOR_BYTES:
        if (!take_data(c, &data, &len))
            return false;
        *to = tenrec_bytes(data, len);
        return true;
    case ITEM_MAJOR_TAG:
        return take_tensor(c, to);
    case ITEM_MAJOR_SIMPLE:
        break;
    default: /* texts are copied, to get a NUL */
        return false;
    }
    if (first == DOUBLE)
        return take_double(c, to);
    if (first == NIL)
        *to = tenrec_nil();
    else if ((first & 0x1f) == ITEM_SIMPLE_TRUE || (first & 0x1f) == ITEM_SIMPLE_FALSE)
        *to = tenrec_bool((first & 0x1f) == ITEM_SIMPLE_TRUE);
    else
        return false;
    c->at++;
    return true;
}

static inline bool take_remaining(struct cursor *c, int64_t *ret_ms)
{
    uint64_t n;

    if (*c->at == NIL) {
        *ret_ms = TENREC_TIMEOUT_NONE;
        c->at++;
        return true;
    }
    if (*c->at >> 5 != ITEM_MAJOR_UINT || !take_head(c, &n))
        return false;
    *ret_ms = (int64_t)n;
    return true;
}

/* The arguments, the time and the options. *ret_taken: values that were filled in. */
static bool take_rest(struct cursor *c, struct codec_call *call, size_t *ret_taken)
{
    struct tenrec_value *to = (struct tenrec_value *)(void *)call->room;
    size_t n;

    if (*c->at >> 5 != ITEM_MAJOR_ARRAY)
        return false;
    n = *c->at++ & 0x1f;
    if (n >= ITEM_LONG_HEAD || n * sizeof *to > sizeof call->room)
        return false;
    for (; *ret_taken < n; ++*ret_taken)
        if (c->at == c->end || !take_value(c, &to[*ret_taken]))
            return false;
    return c->at != c->end && take_remaining(c, &call->remaining_ms) && c->end - c->at == 1 &&
           *c->at == NO_OPTIONS;
}

bool codec_simple_read(const struct tenrec_msg *msg, struct codec_call *ret)
{
    struct tenrec_value *to = (struct tenrec_value *)(void *)ret->room;
    struct cursor c = { msg->payload, (const unsigned char *)msg->payload + msg->payload_len, msg,
                        false };
    size_t n = 0;

    if (msg->type == TENREC_MSG_REMOTE_CALL)
        return false;
    /* An empty name, no arguments, the time and the options take a byte each. */
    if (msg->payload_len < sizeof beginning + 4 || memcmp(c.at, beginning, sizeof beginning) != 0)
        return false;
    c.at += sizeof beginning;
    if (*c.at >> 5 != ITEM_MAJOR_TEXT || !take_data(&c, &ret->function, &ret->function_len) ||
        !is_text(ret->function, ret->function_len) || c.at == c.end)
        return false;
    if (!take_rest(&c, ret, &n)) {
        if (c.tensors)
            values_finish(to, n);
        return false;
    }
    ret->args = n ? to : NULL;
    ret->n = n;
    ret->spans_max = 0;
    ret->heap = NULL;
    ret->tensors = c.tensors;
    ret->borrowed = 0;
    ret->refers = false;
    return true;
}
