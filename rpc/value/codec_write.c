/* SPDX-License-Identifier: Apache-2.0 */
/* codec_write.c - writes payloads: the first walk checks and counts, the second walk fills
 * one allocation. */
#include "rpc/value/codec_walk.h"

#include <assert.h>
#include <string.h>
#include <tenrec/future.h>
#include <tenrec/message.h>

#include "core/backend/backend.h"
#include "core/base/fail.h"
#include "core/base/text.h"
#include "core/tensor/tensor.h"
#include "rpc/value/cbor_writer.h"
#include "rpc/value/codec.h"
#include "rpc/value/value_block.h"

#define CALL_OVERHEAD 2 /* heads of the array of items and of the empty map */
#define CALL_NIL 1      /* the remaining time, without a limit */
#define SPANS_LEN (sizeof CODEC_OPTION_SPANS - 1)
#define TRACE_LEN (sizeof CODEC_OPTION_TRACE - 1)

/* Tag 55799, "self-described CBOR". */
static const unsigned char self_described[] = { 0xd9, 0xd9, 0xf7 };
static const unsigned char nil_payload[] = { 0xd9, 0xd9, 0xf7, 0xf6 };

struct total {
    size_t bytes;
    uint32_t tensors;
    struct codec_refs *refs;
    const struct tenrec_value *deref; /* the reference that stands for its value, or NULL */
};

struct writing {
    struct cbor_writer w;
    struct tenrec_msg *msg;
    uint32_t tensor; /* the next one */
    const struct codec_ref *ref;
    const struct tenrec_value *deref;
};

static tenrec_status add_text(const char *text, size_t n, struct total *t, tenrec_error *err)
{
    size_t good = utf8_span(text, n);

    if (good != n)
        return tenrec_fail(err, TENREC_EINVAL,
                           "text is not UTF-8 at its byte %zu (send bytes instead)", good);
    t->bytes += cbor_head_size(n) + n;
    return TENREC_OK;
}

static tenrec_status add_long_value(const struct tenrec_value *v, int depth, struct total *t,
                                    tenrec_error *err);

static inline tenrec_status add_value(const struct tenrec_value *v, int depth, struct total *t,
                                      tenrec_error *err)
{
    if (unlikely(v->flags != 0))
        return value_refuse_flags(v, err);
    switch (v->type) {
    case TENREC_VALUE_NIL:
    case TENREC_VALUE_BOOL:
        t->bytes += 1;
        return TENREC_OK;
    case TENREC_VALUE_INT:
        t->bytes += cbor_int_size(v->u.integer);
        return TENREC_OK;
    case TENREC_VALUE_DOUBLE:
        t->bytes += CBOR_DOUBLE_SIZE;
        return TENREC_OK;
    default:
        return add_long_value(v, depth, t, err);
    }
}

static tenrec_status add_items(const struct tenrec_value *v, int depth, struct total *t,
                               tenrec_error *err)
{
    const bool is_map = v->type == TENREC_VALUE_MAP;
    const struct tenrec_value *item;
    tenrec_status status = TENREC_OK;

    if (v->n && (is_map ? !v->u.map : !v->u.array))
        return value_refuse_null(v, err);
    if (v->n && depth >= VALUE_DEPTH)
        return tenrec_fail(err, TENREC_EINVAL, "values are nested deeper than %d", VALUE_DEPTH);
    t->bytes += cbor_head_size(v->n);
    for (uint64_t i = 0; i < v->n && !status; i++) {
        item = is_map ? &v->u.map[i].value : &v->u.array[i];
        if (is_map && !v->u.map[i].key)
            return value_refuse_key(i, err);
        if (is_map)
            status = add_text(v->u.map[i].key, strlen(v->u.map[i].key), t, err);
        if (!status)
            status = add_value(item, depth + 1, t, err);
    }
    return status;
}

static tenrec_status add_ref(const struct tenrec_value *v, int depth, struct total *t,
                             tenrec_error *err)
{
    struct codec_ref *ref;
    tenrec_status status = codec_make_ref(t->refs, v, v == t->deref, &ref, err);

    if (status)
        return status;
    t->bytes += cbor_head_size(CODEC_TAG_RREF);
    if (v->type == TENREC_VALUE_RREF) {
        t->bytes += codec_fork_size(&ref->fork, v == t->deref);
        return TENREC_OK;
    }
    t->bytes += cbor_head_size(2);
    status = add_text(ref->type, strlen(ref->type), t, err);
    if (!status && depth >= VALUE_DEPTH)
        status = tenrec_fail(err, TENREC_EINVAL, "values are nested deeper than %d", VALUE_DEPTH);
    return status ? status : add_value(ref->encoded, depth + 1, t, err);
}

static tenrec_status add_region(const struct tenrec_value *v, struct total *t, tenrec_error *err)
{
    tenrec_status status = value_check_region(v, err);

    if (status)
        return status;
    t->bytes += codec_region_size(v->u.region);
    return TENREC_OK;
}

/* For values with bytes, or other values, behind their heads, and for unknown types. */
static tenrec_status add_long_value(const struct tenrec_value *v, int depth, struct total *t,
                                    tenrec_error *err)
{
    switch (v->type) {
    case TENREC_VALUE_TEXT:
        if (!v->u.text && v->n)
            return value_refuse_null(v, err);
        return add_text(v->u.text, (size_t)v->n, t, err);
    case TENREC_VALUE_BYTES:
        if (!v->u.bytes && v->n)
            return value_refuse_null(v, err);
        t->bytes += cbor_head_size(v->n) + (size_t)v->n;
        return TENREC_OK;
    case TENREC_VALUE_ARRAY:
    case TENREC_VALUE_MAP:
        return add_items(v, depth, t, err);
    case TENREC_VALUE_TENSOR:
        if (!v->u.tensor)
            return tenrec_fail(err, TENREC_EINVAL, "tensor is NULL");
        t->bytes += cbor_head_size(CODEC_TAG_TENSOR) + cbor_head_size(t->tensors++);
        return TENREC_OK;
    case TENREC_VALUE_RREF:
    case TENREC_VALUE_OBJECT:
        return add_ref(v, depth, t, err);
    case TENREC_VALUE_REGION:
        return add_region(v, t, err);
    default:
        return tenrec_fail(err, TENREC_EINVAL, "value has the unknown type %u", v->type);
    }
}

static tenrec_status put_tensor(struct writing *f, struct tenrec_tensor *t, tenrec_error *err)
{
    struct tenrec_tensor *sent;
    tenrec_status status = tensor_to_send(t, &sent, err);

    if (status)
        return status;
    cbor_write_tag(&f->w, CODEC_TAG_TENSOR);
    cbor_write_int(&f->w, f->tensor);
    rpc_message_set_tensor(f->msg, f->tensor++, sent);
    return TENREC_OK;
}

static tenrec_status put_long_value(struct writing *f, const struct tenrec_value *v,
                                    tenrec_error *err);

/* The values of an array, or the keys and values of a map. */
static tenrec_status put_values(struct writing *f, uint64_t n, const struct tenrec_value *items,
                                const struct tenrec_entry *entries, tenrec_error *err)
{
    const struct tenrec_value *v;
    tenrec_status status = TENREC_OK;

    assert(n == 0 || items || entries);
    for (uint64_t i = 0; i < n && !status; i++) {
        v = entries ? &entries[i].value : &items[i];
        if (entries)
            cbor_write_text(&f->w, entries[i].key, strlen(entries[i].key));
        if (!codec_write_single(&f->w, v))
            status = put_long_value(f, v, err);
    }
    return status;
}

static tenrec_status put_ref(struct writing *f, const struct tenrec_value *v, tenrec_error *err)
{
    const struct codec_ref *ref = f->ref++;
    const bool deref = v == f->deref;

    assert(ref);
    if (v->type == TENREC_VALUE_RREF) {
        cbor_write_tag(&f->w, deref ? CODEC_TAG_DEREF : CODEC_TAG_RREF);
        codec_put_fork(&f->w, &ref->fork, deref);
        return TENREC_OK;
    }
    cbor_write_tag(&f->w, CODEC_TAG_OBJECT);
    cbor_write_array(&f->w, 2);
    cbor_write_text(&f->w, ref->type, strlen(ref->type));
    return put_values(f, 1, ref->encoded, NULL, err);
}

static tenrec_status put_long_value(struct writing *f, const struct tenrec_value *v,
                                    tenrec_error *err)
{
    switch (v->type) {
    case TENREC_VALUE_ARRAY:
        cbor_write_array(&f->w, (size_t)v->n);
        return put_values(f, v->n, v->u.array, NULL, err);
    case TENREC_VALUE_MAP:
        cbor_write_map(&f->w, (size_t)v->n);
        return put_values(f, v->n, NULL, v->u.map, err);
    case TENREC_VALUE_TENSOR:
        return put_tensor(f, v->u.tensor, err);
    case TENREC_VALUE_RREF:
    case TENREC_VALUE_OBJECT:
        return put_ref(f, v, err);
    case TENREC_VALUE_REGION:
        codec_put_region(&f->w, v->u.region);
        return TENREC_OK;
    default:
        return TENREC_OK; /* add_long_value has refused it */
    }
}

static tenrec_status write_begin(struct writing *f, int32_t type, const struct total *t,
                                 tenrec_error *err)
{
    f->msg = rpc_message_new(t->bytes, t->tensors);
    if (!f->msg)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a message of %zu bytes", t->bytes);
    f->msg->type = type;
    f->w.at = f->msg->payload;
    f->w.end = f->w.at + t->bytes;
    f->tensor = 0;
    f->ref = t->refs ? t->refs->ref : NULL;
    f->deref = t->deref;
    memcpy(f->w.at, self_described, sizeof self_described);
    f->w.at += sizeof self_described;
    return TENREC_OK;
}

static tenrec_status write_end(struct writing *f, tenrec_status status, struct tenrec_msg **ret)
{
    if (status) {
        f->msg->release(f->msg);
        return status;
    }
    assert(f->w.at == f->w.end && f->tensor == f->msg->n_tensors);
    *ret = f->msg;
    return TENREC_OK;
}

bool codec_is_cbor(const struct tenrec_msg *msg)
{
    return msg->payload_len >= sizeof self_described &&
           memcmp(msg->payload, self_described, sizeof self_described) == 0;
}

/* The answer of most functions. */
static tenrec_status write_nil(int32_t type, struct tenrec_msg **ret, tenrec_error *err)
{
    struct tenrec_msg *msg = message_new(sizeof nil_payload, 0);

    if (!msg)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a message of %zu bytes",
                           sizeof nil_payload);
    msg->type = type;
    memcpy(msg->payload, nil_payload, sizeof nil_payload);
    *ret = msg;
    return TENREC_OK;
}

static size_t options_size(const struct codec_extra *extra)
{
    size_t size = 0;

    if (extra->spans_max > 0)
        size += cbor_head_size(SPANS_LEN) + SPANS_LEN + cbor_head_size(extra->spans_max);
    if (extra->trace)
        size += cbor_head_size(TRACE_LEN) + TRACE_LEN + cbor_head_size(sizeof *extra->trace) +
                sizeof *extra->trace;
    return size;
}

static void write_options(struct cbor_writer *w, const struct codec_extra *extra)
{
    cbor_write_map(w, (size_t)(extra->spans_max > 0) + (extra->trace != NULL));
    if (extra->spans_max > 0) {
        cbor_write_text(w, CODEC_OPTION_SPANS, SPANS_LEN);
        cbor_write_int(w, extra->spans_max);
    }
    if (extra->trace) {
        cbor_write_text(w, CODEC_OPTION_TRACE, TRACE_LEN);
        cbor_write_bytes(w, extra->trace, sizeof *extra->trace);
    }
}

tenrec_status codec_write_call(int32_t type, const char *function, const struct tenrec_value *args,
                               size_t n, int64_t remaining_ms, const struct codec_extra *extra,
                               struct tenrec_msg **ret, tenrec_error *err)
{
    const struct tenrec_value list = tenrec_value_array(args, n);
    const bool forever = remaining_ms == TENREC_TIMEOUT_NONE;
    const int64_t left_ms = remaining_ms < 0 ? 0 : remaining_ms;
    const struct codec_creation *creation = extra->creation;
    const struct rref_fork made = creation
                                      ? (struct rref_fork){ creation->id, creation->fork, 0, 0 }
                                      : (struct rref_fork){ .owner = 0 };
    struct total t = { .bytes = sizeof self_described + CALL_OVERHEAD + CALL_NIL,
                       .refs = extra->refs,
                       .deref = extra->deref ? args : NULL };
    const size_t function_len = strlen(function);
    struct writing f;
    tenrec_status status;

    status = add_text(function, function_len, &t, err);
    if (!status)
        status = add_items(&list, 0, &t, err);
    if (!forever)
        t.bytes += cbor_int_size(left_ms) - CALL_NIL;
    t.bytes += options_size(extra);
    if (creation)
        t.bytes += codec_fork_size(&made, true);
    if (!status)
        status = write_begin(&f, type, &t, err);
    if (status)
        return status;
    cbor_write_array(&f.w, CODEC_CALL_ITEMS + (creation ? 1U : 0U));
    if (creation)
        codec_put_fork(&f.w, &made, true);
    cbor_write_text(&f.w, function, function_len);
    cbor_write_array(&f.w, n);
    status = put_values(&f, n, args, NULL, err);
    if (status)
        return write_end(&f, status, ret);
    f.msg->key_len = (uint32_t)(f.w.at - (unsigned char *)f.msg->payload);
    if (forever)
        cbor_write_nil(&f.w);
    else
        cbor_write_int(&f.w, left_ms);
    write_options(&f.w, extra);
    return write_end(&f, status, ret);
}

tenrec_status codec_write_any_value(const struct tenrec_value *value, int32_t type,
                                    struct codec_refs *refs, struct tenrec_msg **ret,
                                    tenrec_error *err)
{
    struct total t = { .bytes = sizeof self_described, .refs = refs };
    struct writing f;
    tenrec_status status;

    if (!value || (value->type == TENREC_VALUE_NIL && !value->flags))
        return write_nil(type, ret, err);
    status = add_value(value, 1, &t, err);
    if (!status)
        status = write_begin(&f, type, &t, err);
    if (status)
        return status;
    return write_end(&f, put_values(&f, 1, value, NULL, err), ret);
}

tenrec_status codec_write_value(const struct tenrec_value *value, int32_t type,
                                struct tenrec_msg **ret, tenrec_error *err)
{
    return codec_write_any_value(value, type, NULL, ret, err);
}
