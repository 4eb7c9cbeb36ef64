/* SPDX-License-Identifier: Apache-2.0 */
/* codec_read.c - reads payloads: the first walk checks and counts all items, the second
 * walk fills one block. */
#include "rpc/value/codec_walk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/future.h>
#include <tenrec/message.h>
#include <tenrec/region.h>

#include "core/backend/backend.h"
#include "core/base/text.h"
#include "core/tensor/tensor.h"
#include "rpc/value/codec.h"

/* Values may take so many times the memory of their payload, or so much that it does not matter.
 * That is enough for all but many values of one or two bytes: these may take the usual memory. */
#define VALUES_PER_BYTE 16
#define VALUES_LITTLE ((size_t)1 << 20)
#define VALUES_USUAL ((size_t)256 << 20)

tenrec_status codec_expect(struct cbor_reader *r, enum cbor_kind kind, const char *label,
                           struct cbor_item *ret, tenrec_error *err)
{
    tenrec_status status = cbor_read_item(r, ret, err);

    if (status || ret->kind == kind)
        return status;
    return tenrec_fail(err, TENREC_EPROTOCOL, "%s at byte %zu, expected %s as %s",
                       cbor_kind_name(ret->kind), ret->at, cbor_kind_name(kind), label);
}

/* ---- the first walk --------------------------------------------------------- */

static tenrec_status check_room(struct checking *c, uint64_t n, size_t size, tenrec_error *err);

static tenrec_status check_region(struct checking *c, tenrec_error *err)
{
    struct tenrec_region_ref ref;
    tenrec_status status = check_room(c, 1, sizeof ref, err);

    return status ? status : codec_read_region(&c->r, &ref, err);
}

static tenrec_status check_tag(struct checking *c, const struct cbor_item *tag, int depth,
                               tenrec_error *err)
{
    struct cbor_item index;
    tenrec_status status;

    if (tag->n == CODEC_TAG_REGION)
        return check_region(c, err);
    if (tag->n != CODEC_TAG_TENSOR)
        return codec_check_ref(c, tag, depth, err);
    status = codec_expect(&c->r, CBOR_KIND_INT, "index of a tensor", &index, err);
    if (status)
        return status;
    if (index.integer < 0 || index.integer >= c->n_tensors)
        return tenrec_fail(err, TENREC_EPROTOCOL, "tensor %lld at byte %zu, but the message has %u",
                           (long long)index.integer, index.at, c->n_tensors);
    c->size.tensors = true;
    return TENREC_OK;
}

static tenrec_status check_key(struct checking *c, tenrec_error *err)
{
    struct cbor_item key;
    tenrec_status status = codec_expect(&c->r, CBOR_KIND_TEXT, "key of a map", &key, err);

    if (status)
        return status;
    if (key.n && memchr(key.data, '\0', (size_t)key.n))
        return tenrec_fail(err, TENREC_EPROTOCOL, "key at byte %zu has a zero byte in it", key.at);
    c->size.text += (size_t)key.n + 1;
    return TENREC_OK;
}

static tenrec_status check_values(struct checking *c, uint64_t n, bool keyed, int depth,
                                  tenrec_error *err);

/* Counts `n` values or entries of `size` bytes, before they are walked: an item of one byte makes a
 * value of 32. */
static tenrec_status check_room(struct checking *c, uint64_t n, size_t size, tenrec_error *err)
{
    c->size.items += (size_t)n * size;
    if (c->size.items <= c->size_max)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_ETOOBIG,
                       "values at byte %zu take more than %zu bytes, for a payload of %zu: send "
                       "many small values as a tensor, or as bytes",
                       cbor_reader_offset(&c->r), c->size_max, (size_t)(c->r.end - c->r.begin));
}

static tenrec_status check_items(struct checking *c, const struct cbor_item *head, int depth,
                                 tenrec_error *err)
{
    tenrec_status status;

    if (depth >= VALUE_DEPTH && head->n)
        return tenrec_fail(err, TENREC_EPROTOCOL, "values are nested deeper than %d at byte %zu",
                           VALUE_DEPTH, head->at);
    status = check_room(c, head->n,
                        head->kind == CBOR_KIND_ARRAY ? sizeof(struct tenrec_value)
                                                      : sizeof(struct tenrec_entry),
                        err);
    return status ? status : check_values(c, head->n, head->kind == CBOR_KIND_MAP, depth + 1, err);
}

/* Checks `n` values, each behind a key if `keyed`. A loop: most values are not nested. */
static tenrec_status check_values(struct checking *c, uint64_t n, bool keyed, int depth,
                                  tenrec_error *err)
{
    tenrec_status status = TENREC_OK;
    struct cbor_item it;

    for (; n > 0 && !status; n--) {
        if (keyed && (status = check_key(c, err)))
            break;
        if (!cbor_read(&c->r, &it))
            return cbor_refuse(&c->r, err);
        switch (it.kind) {
        case CBOR_KIND_TEXT:
            c->size.text += (size_t)it.n + 1;
            break;
        case CBOR_KIND_BYTES:
            c->size.text += c->copy_bytes ? (size_t)it.n : 0;
            break;
        case CBOR_KIND_ARRAY:
        case CBOR_KIND_MAP:
            status = check_items(c, &it, depth, err);
            break;
        case CBOR_KIND_TAG:
            status = check_tag(c, &it, depth, err);
            break;
        default:
            break;
        }
    }
    return status;
}

tenrec_status codec_check_value(struct checking *c, int depth, tenrec_error *err)
{
    return check_values(c, 1, false, depth, err);
}

/* Values of a single item, but texts; bytes stay in the message. Returns false for others. */
static inline bool simple_value(const struct cbor_item *it, struct tenrec_value *to)
{
    switch (it->kind) {
    case CBOR_KIND_INT:
        *to = tenrec_value_int(it->integer);
        return true;
    case CBOR_KIND_BOOL:
        *to = tenrec_value_bool(it->boolean);
        return true;
    case CBOR_KIND_DOUBLE:
        *to = tenrec_value_double(it->number);
        return true;
    case CBOR_KIND_NIL:
        *to = tenrec_value_nil();
        return true;
    case CBOR_KIND_BYTES:
        *to = tenrec_value_bytes(it->data, (size_t)it->n);
        return true;
    default:
        return false;
    }
}

static tenrec_status payload_begin(const struct tenrec_msg *msg, struct cbor_reader *ret,
                                   tenrec_error *err)
{
    if (!codec_is_cbor(msg))
        return tenrec_fail(
            err, TENREC_EPROTOCOL,
            "payload of %llu bytes does not begin with d9 d9 f7 at byte 0: the sender is no "
            "Tenrec worker",
            (unsigned long long)msg->payload_len);
    *ret = cbor_reader_of(msg->payload, (size_t)msg->payload_len);
    ret->at += CODEC_BEGIN_SIZE;
    return TENREC_OK;
}

/* The memory of the values of a payload. */
static size_t size_max_of(const struct tenrec_msg *msg)
{
    const size_t most = (size_t)msg->payload_len * VALUES_PER_BYTE + VALUES_LITTLE;

    return most > VALUES_USUAL ? most : VALUES_USUAL;
}

tenrec_status codec_check_begin(struct checking *c, const struct tenrec_msg *msg, tenrec_error *err)
{
    *c = (struct checking){ .n_tensors = msg->n_tensors, .size_max = size_max_of(msg) };
    return payload_begin(msg, &c->r, err);
}

tenrec_status codec_check_end(const struct cbor_reader *r, tenrec_error *err)
{
    if (r->at == r->end)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPROTOCOL, "%zu bytes too many at byte %zu", cbor_reader_left(r),
                       cbor_reader_offset(r));
}

/* ---- the second walk: all items have been checked ----------------------------- */

/* A tensor without an owner lives only as long as the message, so it is copied. */
static tenrec_status tensor_get(const struct tenrec_msg *msg, uint32_t i,
                                struct tenrec_tensor **ret, tenrec_error *err)
{
    struct tenrec_tensor *owner = rpc_message_owner(msg, i);
    const struct tenrec_tensor_desc *d;
    tenrec_status status;

    if (owner) {
        *ret = tenrec_tensor_share(owner);
        return TENREC_OK;
    }
    d = tenrec_msg_tensor(msg, i);
    if (d->device.kind != TENREC_CPU || (!d->data && d->bytes))
        return tenrec_fail(err, TENREC_EPROTOCOL, "tensor %u has no memory in the host", i);
    status = tensor_for_desc(d, ret, err);
    if (status == TENREC_OK && d->bytes)
        memcpy(tenrec_tensor_desc(*ret)->data, d->data, (size_t)d->bytes);
    if (status == TENREC_EINVAL || status == TENREC_ETOOBIG) {
        tenrec_error_prefix(err, "tensor %u", i);
        if (err)
            err->code = TENREC_EPROTOCOL;
        status = TENREC_EPROTOCOL;
    }
    return status;
}

static tenrec_status fill_values(struct filling *f, size_t n, struct tenrec_value *items,
                                 struct tenrec_entry *entries, tenrec_error *err);

static tenrec_status fill_array(struct filling *f, size_t n, struct tenrec_value *to,
                                tenrec_error *err)
{
    struct tenrec_value *items = value_block_items(&f->arena, n, sizeof *items);

    *to = tenrec_value_array(items, n);
    return fill_values(f, n, items, NULL, err);
}

static tenrec_status fill_map(struct filling *f, size_t n, struct tenrec_value *to,
                              tenrec_error *err)
{
    struct tenrec_entry *entries = value_block_items(&f->arena, n, sizeof *entries);

    *to = tenrec_value_map(entries, n);
    return fill_values(f, n, NULL, entries, err);
}

static tenrec_status fill_region(struct filling *f, struct tenrec_value *to, tenrec_error *err)
{
    struct tenrec_region_ref *ref = value_block_items(&f->arena, 1, sizeof *ref);

    *to = tenrec_value_region(ref);
    return codec_read_region(&f->r, ref, err);
}

static tenrec_status fill_tag(struct filling *f, const struct cbor_item *tag,
                              struct tenrec_value *to, tenrec_error *err)
{
    struct tenrec_tensor *t;
    struct cbor_item index;
    tenrec_status status;

    if (tag->n == CODEC_TAG_REGION)
        return fill_region(f, to, err);
    if (tag->n != CODEC_TAG_TENSOR)
        return codec_fill_ref(f, tag, to, err);
    status = cbor_read_item(&f->r, &index, err);
    if (!status)
        status = tensor_get(f->msg, (uint32_t)index.integer, &t, err);
    if (!status)
        *to = tenrec_value_tensor(t);
    return status;
}

/* Fills the values of an array, or the keys and values of a map. */
static tenrec_status fill_values(struct filling *f, size_t n, struct tenrec_value *items,
                                 struct tenrec_entry *entries, tenrec_error *err)
{
    tenrec_status status = TENREC_OK;
    struct tenrec_value *to;
    struct cbor_item it;

    assert(n == 0 || items || entries);
    for (size_t i = 0; i < n && !status; i++) {
        to = entries ? &entries[i].value : &items[i];
        if (entries) {
            if ((status = cbor_read_item(&f->r, &it, err)))
                break;
            entries[i].key = value_block_text(&f->arena, it.data, (size_t)it.n, true);
        }
        if (!cbor_read(&f->r, &it))
            return cbor_refuse(&f->r, err);
        if (simple_value(&it, to)) {
            if (it.kind == CBOR_KIND_BYTES && f->copy_bytes)
                to->u.bytes = value_block_text(&f->arena, it.data, (size_t)it.n, false);
        } else if (it.kind == CBOR_KIND_TEXT) {
            *to = tenrec_value_of(TENREC_VALUE_TEXT, it.n);
            to->u.text = value_block_text(&f->arena, it.data, (size_t)it.n, true);
        } else if (it.kind == CBOR_KIND_ARRAY) {
            status = fill_array(f, (size_t)it.n, to, err);
        } else if (it.kind == CBOR_KIND_MAP) {
            status = fill_map(f, (size_t)it.n, to, err);
        } else {
            status = fill_tag(f, &it, to, err);
        }
    }
    return status;
}

tenrec_status codec_fill_value(struct filling *f, struct tenrec_value *to, tenrec_error *err)
{
    return fill_values(f, 1, to, NULL, err);
}

/* ---- whole payloads ------------------------------------------------------------ */

/* A block for values, which lives as long as the message as far as its sender is charged. */
static tenrec_status block_new(const struct tenrec_msg *msg, const struct value_block_size *size,
                               void **ret, tenrec_error *err)
{
    const size_t bytes = size->items + size->text;
    const tenrec_status st = message_charge(msg, bytes, err);

    if (st != TENREC_OK)
        return st;
    *ret = malloc(bytes);
    return *ret ? TENREC_OK
                : tenrec_fail(err, TENREC_ENOMEM, "no memory for a value of %zu bytes", bytes);
}

/* Begins the second walk at `first`, into a block of the size that `c` has counted. */
static struct filling fill_begin(const struct checking *c, const struct tenrec_msg *msg,
                                 const unsigned char *first, void *block)
{
    struct filling f = { .r = c->r, .msg = msg, .arena = value_block_at(block, &c->size) };

    f.r.at = first;
    f.r.texts_checked = true;
    return f;
}

/* Reads the items of a call before the name of its function. */
static tenrec_status read_begin(const struct tenrec_msg *msg, struct cbor_reader *ret_r,
                                struct codec_creation *ret, tenrec_error *err)
{
    const bool creates = msg->type == TENREC_MSG_REMOTE_CALL;
    struct cbor_item it;
    tenrec_status status = payload_begin(msg, ret_r, err);

    if (!status)
        status = codec_expect(ret_r, CBOR_KIND_ARRAY, "call", &it, err);
    if (status)
        return status;
    if (it.n != CODEC_CALL_ITEMS + (creates ? 1U : 0U))
        return tenrec_fail(err, TENREC_EPROTOCOL, "call at byte %zu has %llu items, expected %d",
                           it.at, (unsigned long long)it.n, CODEC_CALL_ITEMS + (creates ? 1 : 0));
    return creates ? codec_read_creation(ret_r, ret, err) : TENREC_OK;
}

tenrec_status codec_read_any_head(const struct tenrec_msg *msg, struct codec_head *ret,
                                  tenrec_error *err)
{
    struct cbor_reader r;
    struct cbor_item name;
    tenrec_status status = read_begin(msg, &r, &ret->creation, err);

    if (!status)
        status = codec_expect(&r, CBOR_KIND_TEXT, "name of a function", &name, err);
    if (status)
        return status;
    ret->function = name.data;
    ret->function_len = (size_t)name.n;
    ret->args_at = cbor_reader_offset(&r);
    return TENREC_OK;
}

static bool key_is(const struct cbor_item *key, const char *name)
{
    return key->n == strlen(name) && memcmp(key->data, name, (size_t)key->n) == 0;
}

static tenrec_status read_trace(struct checking *c, struct codec_call *call, tenrec_error *err)
{
    struct cbor_item value;
    tenrec_status status = codec_expect(&c->r, CBOR_KIND_BYTES, "context of a trace", &value, err);

    if (status)
        return status;
    if (value.n != sizeof call->trace)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "context of a trace at byte %zu has %llu bytes, expected %zu", value.at,
                           (unsigned long long)value.n, sizeof call->trace);
    memcpy(&call->trace, value.data, sizeof call->trace);
    call->traced = trace_context_valid(&call->trace);
    if (!call->traced)
        return tenrec_fail(err, TENREC_EPROTOCOL, "an id of a trace at byte %zu is zero", value.at);
    return TENREC_OK;
}

static tenrec_status read_spans(struct checking *c, struct codec_call *call, tenrec_error *err)
{
    struct cbor_item value;
    tenrec_status status = codec_expect(&c->r, CBOR_KIND_INT, "bytes of spans", &value, err);

    if (status)
        return status;
    if (value.integer < 0 || value.integer > UINT32_MAX)
        return tenrec_fail(err, TENREC_EPROTOCOL, "%lld bytes of spans are asked for at byte %zu",
                           (long long)value.integer, value.at);
    call->spans_max = (uint32_t)value.integer;
    return TENREC_OK;
}

/* Reads one option of a call. Unknown options must be well-formed. */
static tenrec_status read_option(struct checking *c, struct codec_call *call, tenrec_error *err)
{
    struct cbor_item key;
    tenrec_status status = codec_expect(&c->r, CBOR_KIND_TEXT, "key of an option", &key, err);

    if (status)
        return status;
    if (key_is(&key, CODEC_OPTION_SPANS))
        return read_spans(c, call, err);
    if (key_is(&key, CODEC_OPTION_TRACE))
        return read_trace(c, call, err);
    return codec_check_value(c, 2, err);
}

static tenrec_status read_remaining(struct cbor_reader *r, int64_t *ret_ms, tenrec_error *err)
{
    struct cbor_item it;
    tenrec_status status = cbor_read_item(r, &it, err);

    if (status)
        return status;
    if (it.kind == CBOR_KIND_NIL) {
        *ret_ms = TENREC_TIMEOUT_NONE;
        return TENREC_OK;
    }
    if (it.kind != CBOR_KIND_INT || it.integer < 0)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "remaining time at byte %zu is neither a count of milliseconds nor null",
                           it.at);
    *ret_ms = it.integer;
    return TENREC_OK;
}

/* Reads the items of a call behind its arguments: the remaining time, and options. */
static tenrec_status read_limits(struct checking *c, struct codec_call *call, tenrec_error *err)
{
    struct cbor_item options;
    tenrec_status status = read_remaining(&c->r, &call->remaining_ms, err);

    call->spans_max = 0;
    call->traced = false;
    if (!status)
        status = codec_expect(&c->r, CBOR_KIND_MAP, "options of a call", &options, err);
    for (uint64_t i = 0; !status && i < options.n; i++)
        status = read_option(c, call, err);
    return status ? status : codec_check_end(&c->r, err);
}

tenrec_status codec_read_any_args(const struct tenrec_msg *msg, const struct codec_head *head,
                                  struct codec_call *ret, tenrec_error *err)
{
    struct checking c = { .r = cbor_reader_of(msg->payload, (size_t)msg->payload_len),
                          .n_tensors = msg->n_tensors,
                          .size_max = size_max_of(msg),
                          .may_refer = true };
    struct value_block_size size;
    struct tenrec_value list;
    struct cbor_item it;
    struct filling f;
    const unsigned char *first;
    tenrec_status status;

    c.r.at += head->args_at;
    status = codec_expect(&c.r, CBOR_KIND_ARRAY, "arguments", &it, err);
    if (status)
        return status;
    first = c.r.at;
    status = check_room(&c, it.n, sizeof list, err);
    if (!status)
        status = check_values(&c, it.n, false, 1, err);
    size = c.size; /* options are not kept */
    if (!status)
        status = read_limits(&c, ret, err);
    if (status)
        return status;
    c.size = size;
    ret->heap = NULL;
    if (size.items + size.text > sizeof ret->room) {
        ret->heap_size = size.items + size.text;
        status = block_new(msg, &size, &ret->heap, err);
        if (status)
            return status;
    }
    f = fill_begin(&c, msg, first, ret->heap ? ret->heap : ret->room);
    status = fill_array(&f, (size_t)it.n, &list, err);
    ret->args = it.n > 0 ? list.u.array : NULL;
    ret->n = (size_t)it.n;
    ret->tensors = size.tensors;
    ret->refers = c.refers;
    ret->borrowed = 0;
    if (status)
        codec_call_finish(ret);
    return status;
}

tenrec_status codec_read_call(const struct tenrec_msg *msg, struct codec_call *ret,
                              tenrec_error *err)
{
    struct codec_head head;
    tenrec_status status = codec_read_head(msg, &head, err);

    return status ? status : codec_read_args(msg, &head, ret, err);
}

tenrec_status codec_read_any_value(const struct tenrec_msg *msg, struct tenrec_value **ret,
                                   bool *ret_refers, tenrec_error *err)
{
    struct checking c;
    struct filling f;
    struct tenrec_value *root;
    void *block;
    tenrec_status status = codec_check_begin(&c, msg, err);

    if (status)
        return status;
    c.copy_bytes = true;
    c.may_refer = ret_refers != NULL;
    c.size.items = sizeof *root;
    status = codec_check_value(&c, 1, err);
    if (!status)
        status = codec_check_end(&c.r, err);
    if (status)
        return status;
    status = block_new(msg, &c.size, &block, err);
    if (status)
        return status;
    root = block;
    f = fill_begin(&c, msg, c.r.begin + CODEC_BEGIN_SIZE, root);
    f.copy_bytes = true;
    value_block_items(&f.arena, 1, sizeof *root);
    status = codec_fill_value(&f, root, err);
    if (status) {
        tenrec_value_drop(root);
        return status;
    }
    *ret = root;
    if (ret_refers)
        *ret_refers = c.refers;
    return TENREC_OK;
}

bool codec_first_end(const struct tenrec_msg *msg, size_t *ret)
{
    struct checking c;

    if (codec_check_begin(&c, msg, NULL) != TENREC_OK)
        return false;
    c.may_refer = true;
    if (codec_check_value(&c, 1, NULL) != TENREC_OK)
        return false;
    *ret = cbor_reader_offset(&c.r);
    return true;
}
