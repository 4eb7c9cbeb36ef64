/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store_request.h"

#include <tenrec/store.h>

/* Layout of the arguments: k key, v value, i 64-bit number, u 32-bit number,
 * K list of keys, M list of keys with values. */
static const struct {
    int8_t number_1_13;
    int8_t number_2_2;
    const char *layout;
} ops[STORE_OP_COUNT] = {
    [STORE_OP_NONE] = { -1, -1, "" },         [STORE_OP_VALIDATE] = { -1, 0, "u" },
    [STORE_OP_SET] = { 0, 1, "kv" },          [STORE_OP_COMPARE_SET] = { 1, 2, "kvv" },
    [STORE_OP_GET] = { 2, 3, "k" },           [STORE_OP_ADD] = { 3, 4, "ki" },
    [STORE_OP_CHECK] = { 4, 5, "K" },         [STORE_OP_WAIT] = { 5, 6, "K" },
    [STORE_OP_NUM_KEYS] = { 6, 7, "" },       [STORE_OP_WATCH_KEY] = { 7, -1, "k" },
    [STORE_OP_DELETE_KEY] = { 8, 8, "k" },    [STORE_OP_APPEND] = { 9, 9, "kv" },
    [STORE_OP_MULTI_GET] = { 10, 10, "K" },   [STORE_OP_MULTI_SET] = { 11, 11, "M" },
    [STORE_OP_CANCEL_WAIT] = { 12, 12, "" },  [STORE_OP_PING] = { -1, 13, "u" },
    [STORE_OP_QUEUE_PUSH] = { -1, 14, "kv" }, [STORE_OP_QUEUE_POP] = { -1, 15, "k" },
    [STORE_OP_QUEUE_LEN] = { -1, 16, "k" },   [STORE_OP_LIST_KEYS] = { -1, 17, "" },
    [STORE_OP_BARRIER] = { -1, 18, "ki" },
};

int store_op_number(enum store_dialect d, enum store_op op)
{
    return d == STORE_DIALECT_2_2 ? ops[op].number_2_2 : ops[op].number_1_13;
}

static enum store_op op_of(enum store_dialect d, uint8_t number)
{
    for (int op = STORE_OP_NONE + 1; op < STORE_OP_COUNT; op++)
        if (store_op_number(d, (enum store_op)op) == number)
            return (enum store_op)op;
    return STORE_OP_NONE;
}

struct request_reader {
    struct bytes_reader bytes;
    const char *why; /* the request is refused; NULL: bytes are missing */
};

/* As for the cursor of bytes, nothing is read after a refusal. */
static void request_refuse(struct request_reader *r, const char *why)
{
    r->why = why;
    r->bytes.bad = true;
}

static struct bytes_slice read_blob(struct request_reader *r, size_t max, const char *why)
{
    const uint64_t n = bytes_read_u64(&r->bytes);

    if (n > max) {
        request_refuse(r, why);
        return (struct bytes_slice){ NULL, 0 };
    }
    return (struct bytes_slice){ bytes_read(&r->bytes, (size_t)n), (size_t)n };
}

static struct bytes_slice read_key(struct request_reader *r)
{
    return read_blob(r, TENREC_STORE_MAX_KEY, "key is longer than 8 KiB");
}

static struct bytes_slice read_value(struct request_reader *r)
{
    return read_blob(r, STORE_MAX_VALUE, "value is longer than 64 MiB");
}

static void read_list_length(struct request_reader *r, bool pairs, struct store_parser *p)
{
    const uint64_t n = bytes_read_u64(&r->bytes);

    if (n > STORE_MAX_LIST)
        request_refuse(r, "more than 131072 keys in one request");
    if (r->bytes.bad)
        return;
    p->request.n = (size_t)n;
    p->n_units = pairs ? 2 * n : n;
    p->list_at = p->at = r->bytes.at;
    p->in_list = true;
}

/* Each blob is read once. */
static void read_list(struct request_reader *r, bool pairs, struct store_parser *p)
{
    if (!p->in_list)
        read_list_length(r, pairs, p);
    for (; !r->bytes.bad && p->unit < p->n_units; p->unit++) {
        if (pairs && p->unit % 2 == 1)
            read_value(r);
        else
            read_key(r);
        if (r->bytes.bad)
            return;
        p->at = r->bytes.at;
    }
    p->request.list.len = p->at - p->list_at;
}

/* Reads one argument. If it is not whole, it is read again. */
static void read_argument(struct request_reader *r, char kind, struct store_parser *p)
{
    struct store_request *q = &p->request;

    switch (kind) {
    case 'k':
        q->key = read_key(r);
        p->key_at = r->bytes.at - q->key.len;
        break;
    case 'v':
        q->value[p->n_values] = read_value(r);
        p->value_at[p->n_values] = r->bytes.at - q->value[p->n_values].len;
        p->n_values += !r->bytes.bad;
        break;
    case 'i':
        q->number = (int64_t)bytes_read_u64(&r->bytes);
        break;
    case 'u':
        q->number = bytes_read_u32(&r->bytes);
        break;
    default:
        read_list(r, kind == 'M', p);
    }
}

/* The buffer may have moved since a part of the request was read. */
static void set_spans(const struct store_parser *p, const uint8_t *data, struct store_request *ret)
{
    *ret = p->request;
    ret->key.data = data + p->key_at;
    ret->value[0].data = data + p->value_at[0];
    ret->value[1].data = data + p->value_at[1];
    ret->list.data = data + p->list_at;
    ret->len = p->at;
}

enum store_parse store_request_parse(struct store_parser *p, enum store_dialect d,
                                     const uint8_t *data, size_t len, struct store_request *ret,
                                     const char **ret_why)
{
    const size_t room = len < STORE_MAX_REQUEST ? len : STORE_MAX_REQUEST;
    struct request_reader r = { .bytes = { .data = data, .len = room, .at = p->at } };

    *ret = (struct store_request){ .len = 1 };
    if (len == 0)
        return STORE_PARSE_PART;
    if (p->at == 0) {
        p->request.op = op_of(d, data[0]);
        p->at = r.bytes.at = 1;
    }
    if (p->request.op == STORE_OP_NONE) {
        *ret_why = "no such request";
        return STORE_PARSE_BAD;
    }
    for (; ops[p->request.op].layout[p->argument]; p->argument++) {
        read_argument(&r, ops[p->request.op].layout[p->argument], p);
        if (r.bytes.bad) {
            if (r.bytes.need > STORE_MAX_REQUEST)
                r.why = "request is longer than 160 MiB";
            *ret_why = r.why;
            ret->len = r.bytes.need;
            return r.why ? STORE_PARSE_BAD : STORE_PARSE_PART;
        }
        p->at = r.bytes.at;
    }
    set_spans(p, data, ret);
    return STORE_PARSE_WHOLE;
}

struct bytes_slice store_request_next(struct bytes_slice *list)
{
    size_t n = (size_t)bytes_get_u64(list->data);
    struct bytes_slice blob = { list->data + 8, n };

    list->data += 8 + n;
    list->len -= 8 + n;
    return blob;
}

enum store_dialect store_dialect_of(const uint8_t *data, size_t len)
{
    if (len == 0)
        return STORE_DIALECT_UNKNOWN;
    if (data[0] != 0)
        return STORE_DIALECT_1_13;
    for (size_t i = 1; i < 5; i++) {
        if (i >= len)
            return STORE_DIALECT_UNKNOWN;
        if (data[i] != (uint8_t)(STORE_MAGIC >> (8 * (i - 1))))
            return STORE_DIALECT_1_13;
    }
    return STORE_DIALECT_2_2;
}
