/* SPDX-License-Identifier: Apache-2.0 */
/* Writing payloads: first count, which finds all that is wrong, then one
 * allocation, then fill. */
#include "rpc/codec_walk.h"

#include <assert.h>
#include <string.h>
#include <tenrec/future.h>

#include "rpc/arena.h"
#include "rpc/item_write.h"
#include "rpc/message.h"
#include "rpc/tensor.h"
#include "rpc/utf8.h"

#define CALL_ITEMS 4
#define CALL_OVERHEAD 2 /* heads of the array of items and of the empty map */
#define CALL_NIL 1      /* the time that remains, when there is no limit */
#define ERROR_ITEMS 5
#define SPANS_LEN (sizeof CODEC_OPTION_SPANS - 1)

/* Tag 55799, "what follows is CBOR". */
static const unsigned char self_described[] = { 0xd9, 0xd9, 0xf7 };
static const unsigned char nil_payload[] = { 0xd9, 0xd9, 0xf7, 0xf6 };

struct total {
    size_t bytes;
    uint32_t tensors;
    struct codec_refs *refs;
};

struct writing {
    struct item_writer w;
    struct tenrec_msg *msg;
    uint32_t tensor; /* the next one */
    const struct codec_ref *ref;
};

static tenrec_status add_text(const char *text, size_t n, struct total *t, tenrec_error *err)
{
    size_t good = utf8_span(text, n);

    if (good != n)
        return tenrec_fail(err, TENREC_EINVAL,
                           "text is not UTF-8 at its byte %zu (send bytes instead)", good);
    t->bytes += item_head_size(n) + n;
    return TENREC_OK;
}

static tenrec_status no_memory_at(const struct tenrec_value *v, tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EINVAL, "%s of %llu bytes or items is NULL",
                       tenrec_value_type_name(v->type), (unsigned long long)v->n);
}

static tenrec_status add_value(const struct tenrec_value *v, int depth, struct total *t,
                               tenrec_error *err);

static tenrec_status add_items(const struct tenrec_value *v, int depth, struct total *t,
                               tenrec_error *err)
{
    tenrec_status status = TENREC_OK;

    if (v->n && (v->type == TENREC_VALUE_ARRAY ? !v->u.array : !v->u.map))
        return no_memory_at(v, err);
    t->bytes += item_head_size(v->n);
    for (uint64_t i = 0; i < v->n && !status; i++) {
        if (v->type == TENREC_VALUE_ARRAY) {
            status = add_value(&v->u.array[i], depth + 1, t, err);
            continue;
        }
        if (!v->u.map[i].key)
            return tenrec_fail(err, TENREC_EINVAL, "key %llu of a map is NULL",
                               (unsigned long long)i);
        status = add_text(v->u.map[i].key, strlen(v->u.map[i].key), t, err);
        if (!status)
            status = add_value(&v->u.map[i].value, depth + 1, t, err);
    }
    return status;
}

static tenrec_status add_ref(const struct tenrec_value *v, int depth, struct total *t,
                             tenrec_error *err)
{
    struct codec_ref *ref;
    tenrec_status status = codec_make_ref(t->refs, v, &ref, err);

    if (status)
        return status;
    t->bytes += item_head_size(CODEC_TAG_RREF);
    if (v->type == TENREC_VALUE_RREF) {
        t->bytes += codec_fork_size(&ref->fork, v->reserved == CODEC_DEREF);
        return TENREC_OK;
    }
    t->bytes += item_head_size(2);
    status = add_text(ref->type, strlen(ref->type), t, err);
    return status ? status : add_value(ref->encoded, depth + 1, t, err);
}

static tenrec_status add_value(const struct tenrec_value *v, int depth, struct total *t,
                               tenrec_error *err)
{
    if (depth > VALUE_DEPTH)
        return tenrec_fail(err, TENREC_EINVAL, "values are nested deeper than %d", VALUE_DEPTH);
    switch (v->type) {
    case TENREC_VALUE_NIL:
    case TENREC_VALUE_BOOL:
        t->bytes += 1;
        return TENREC_OK;
    case TENREC_VALUE_INT:
        t->bytes += item_int_size(v->u.integer);
        return TENREC_OK;
    case TENREC_VALUE_DOUBLE:
        t->bytes += ITEM_DOUBLE_SIZE;
        return TENREC_OK;
    case TENREC_VALUE_TEXT:
        if (!v->u.text && v->n)
            return no_memory_at(v, err);
        return add_text(v->u.text, (size_t)v->n, t, err);
    case TENREC_VALUE_BYTES:
        if (!v->u.bytes && v->n)
            return no_memory_at(v, err);
        t->bytes += item_head_size(v->n) + (size_t)v->n;
        return TENREC_OK;
    case TENREC_VALUE_ARRAY:
    case TENREC_VALUE_MAP:
        return add_items(v, depth, t, err);
    case TENREC_VALUE_TENSOR:
        if (!v->u.tensor)
            return tenrec_fail(err, TENREC_EINVAL, "tensor is NULL");
        t->bytes += item_head_size(CODEC_TAG_TENSOR) + item_head_size(t->tensors++);
        return TENREC_OK;
    case TENREC_VALUE_RREF:
    case TENREC_VALUE_OBJECT:
        return add_ref(v, depth, t, err);
    default:
        return tenrec_fail(err, TENREC_EINVAL, "value has type %u, which is none", v->type);
    }
}

static tenrec_status put_tensor(struct writing *f, struct tenrec_tensor *t, tenrec_error *err)
{
    struct tenrec_tensor *sent;
    tenrec_status status = tensor_to_send(t, &sent, err);

    if (status)
        return status;
    item_put_tag(&f->w, CODEC_TAG_TENSOR);
    item_put_int(&f->w, f->tensor);
    rpc_message_set_tensor(f->msg, f->tensor++, sent);
    return TENREC_OK;
}

static tenrec_status put_value(struct writing *f, const struct tenrec_value *v, tenrec_error *err);

static tenrec_status put_ref(struct writing *f, const struct tenrec_value *v, tenrec_error *err)
{
    const struct codec_ref *ref = f->ref++;
    const bool deref = v->reserved == CODEC_DEREF;

    assert(ref);
    if (v->type == TENREC_VALUE_RREF) {
        item_put_tag(&f->w, deref ? CODEC_TAG_DEREF : CODEC_TAG_RREF);
        codec_put_fork(&f->w, &ref->fork, deref);
        return TENREC_OK;
    }
    item_put_tag(&f->w, CODEC_TAG_OBJECT);
    item_put_array(&f->w, 2);
    item_put_text(&f->w, ref->type, strlen(ref->type));
    return put_value(f, ref->encoded, err);
}

static tenrec_status put_value(struct writing *f, const struct tenrec_value *v, tenrec_error *err)
{
    tenrec_status status = TENREC_OK;

    switch (v->type) {
    case TENREC_VALUE_NIL:
        item_put_nil(&f->w);
        break;
    case TENREC_VALUE_BOOL:
        item_put_bool(&f->w, v->u.boolean);
        break;
    case TENREC_VALUE_INT:
        item_put_int(&f->w, v->u.integer);
        break;
    case TENREC_VALUE_DOUBLE:
        item_put_double(&f->w, v->u.number);
        break;
    case TENREC_VALUE_TEXT:
        item_put_text(&f->w, v->u.text, (size_t)v->n);
        break;
    case TENREC_VALUE_BYTES:
        item_put_bytes(&f->w, v->u.bytes, (size_t)v->n);
        break;
    case TENREC_VALUE_ARRAY:
        item_put_array(&f->w, (size_t)v->n);
        for (uint64_t i = 0; i < v->n && !status; i++)
            status = put_value(f, &v->u.array[i], err);
        break;
    case TENREC_VALUE_MAP:
        item_put_map(&f->w, (size_t)v->n);
        for (uint64_t i = 0; i < v->n && !status; i++) {
            item_put_text(&f->w, v->u.map[i].key, strlen(v->u.map[i].key));
            status = put_value(f, &v->u.map[i].value, err);
        }
        break;
    case TENREC_VALUE_TENSOR:
        status = put_tensor(f, v->u.tensor, err);
        break;
    case TENREC_VALUE_RREF:
    case TENREC_VALUE_OBJECT:
        status = put_ref(f, v, err);
        break;
    default:
        break; /* add_value has refused it */
    }
    return status;
}

static tenrec_status begin(struct writing *f, int32_t type, const struct total *t,
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
    memcpy(f->w.at, self_described, sizeof self_described);
    f->w.at += sizeof self_described;
    return TENREC_OK;
}

static tenrec_status end(struct writing *f, tenrec_status status, struct tenrec_msg **ret)
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

bool codec_is_nil(const struct tenrec_msg *msg)
{
    return msg->payload_len == sizeof nil_payload &&
           memcmp(msg->payload, nil_payload, sizeof nil_payload) == 0;
}

/* What most functions answer. */
static tenrec_status write_nil(int32_t type, struct tenrec_msg **ret, tenrec_error *err)
{
    struct tenrec_msg *msg = rpc_message_new(sizeof nil_payload, 0);

    if (!msg)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a message of %zu bytes",
                           sizeof nil_payload);
    msg->type = type;
    memcpy(msg->payload, nil_payload, sizeof nil_payload);
    *ret = msg;
    return TENREC_OK;
}

tenrec_status codec_write_call_with(int32_t type, const char *function,
                                    const struct tenrec_value *args, size_t n, int64_t remaining_ms,
                                    const struct codec_extra *extra, struct tenrec_msg **ret,
                                    tenrec_error *err)
{
    const struct tenrec_value list = tenrec_array(args, n);
    const bool forever = remaining_ms == TENREC_TIMEOUT_NONE;
    const int64_t left_ms = remaining_ms < 0 ? 0 : remaining_ms;
    const struct codec_creation *creation = extra->creation;
    const struct rref_fork made = creation
                                      ? (struct rref_fork){ creation->id, creation->fork, 0, 0 }
                                      : (struct rref_fork){ .owner = 0 };
    struct total t = { .bytes = sizeof self_described + CALL_OVERHEAD + CALL_NIL,
                       .refs = extra->refs };
    const size_t function_len = strlen(function);
    struct writing f;
    tenrec_status status;

    status = add_text(function, function_len, &t, err);
    if (!status)
        status = add_items(&list, 0, &t, err);
    if (!forever)
        t.bytes += item_int_size(left_ms) - CALL_NIL;
    if (extra->spans_max > 0)
        t.bytes += item_head_size(SPANS_LEN) + SPANS_LEN + item_head_size(extra->spans_max);
    if (creation)
        t.bytes += codec_fork_size(&made, true);
    if (!status)
        status = begin(&f, type, &t, err);
    if (status)
        return status;
    item_put_array(&f.w, CALL_ITEMS + (creation ? 1U : 0U));
    if (creation)
        codec_put_fork(&f.w, &made, true);
    item_put_text(&f.w, function, function_len);
    item_put_array(&f.w, n);
    for (size_t i = 0; i < n && !status; i++)
        status = put_value(&f, &args[i], err);
    if (status) /* nothing more has to fit */
        return end(&f, status, ret);
    f.msg->key_len = (uint32_t)(f.w.at - (unsigned char *)f.msg->payload);
    if (forever)
        item_put_nil(&f.w);
    else
        item_put_int(&f.w, left_ms);
    item_put_map(&f.w, extra->spans_max > 0);
    if (extra->spans_max > 0) {
        item_put_text(&f.w, CODEC_OPTION_SPANS, SPANS_LEN);
        item_put_int(&f.w, extra->spans_max);
    }
    return end(&f, status, ret);
}

tenrec_status codec_write_call_asking(int32_t type, const char *function,
                                      const struct tenrec_value *args, size_t n,
                                      int64_t remaining_ms, uint32_t spans_max,
                                      struct tenrec_msg **ret, tenrec_error *err)
{
    const struct codec_extra extra = { .spans_max = spans_max };

    return codec_write_call_with(type, function, args, n, remaining_ms, &extra, ret, err);
}

tenrec_status codec_write_call(int32_t type, const char *function, const struct tenrec_value *args,
                               size_t n, int64_t remaining_ms, struct tenrec_msg **ret,
                               tenrec_error *err)
{
    static const struct codec_extra none;

    return codec_write_call_with(type, function, args, n, remaining_ms, &none, ret, err);
}

tenrec_status codec_write_value(const struct tenrec_value *value, int32_t type,
                                struct tenrec_msg **ret, tenrec_error *err)
{
    return codec_write_value_refs(value, type, NULL, ret, err);
}

tenrec_status codec_write_value_refs(const struct tenrec_value *value, int32_t type,
                                     struct codec_refs *refs, struct tenrec_msg **ret,
                                     tenrec_error *err)
{
    struct total t = { sizeof self_described, 0, refs };
    struct writing f;
    tenrec_status status;

    if (!value || value->type == TENREC_VALUE_NIL)
        return write_nil(type, ret, err);
    status = add_value(value, 1, &t, err);
    if (!status)
        status = begin(&f, type, &t, err);
    if (status)
        return status;
    return end(&f, put_value(&f, value, err), ret);
}
