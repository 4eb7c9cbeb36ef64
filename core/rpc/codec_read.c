/* SPDX-License-Identifier: Apache-2.0 */
/* Reading payloads: a first walk checks everything and counts, a second one
 * fills one block. */
#include "rpc/codec_walk.h"

#include <stdlib.h>
#include <string.h>
#include <tenrec/future.h>

#include "rpc/codec_simple.h"
#include "rpc/message.h"
#include "rpc/tensor.h"

#define CALL_ITEMS 4

tenrec_status codec_expect(struct item_reader *r, enum item_kind kind, const char *what,
                           struct item *ret, tenrec_error *err)
{
    tenrec_status status = item_next(r, ret, err);

    if (status || ret->kind == kind)
        return status;
    return tenrec_fail(err, TENREC_EPROTOCOL, "%s at byte %zu, expected %s as %s",
                       item_kind_name(ret->kind), ret->at, item_kind_name(kind), what);
}

/* ---- the first walk --------------------------------------------------------- */

static tenrec_status check_tag(struct checking *c, const struct item *tag, int depth,
                               tenrec_error *err)
{
    struct item index;
    tenrec_status status;

    if (tag->n != CODEC_TAG_TENSOR)
        return codec_check_ref(c, tag, depth, err);
    status = codec_expect(&c->r, ITEM_INT, "index of a tensor", &index, err);
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
    struct item key;
    tenrec_status status = codec_expect(&c->r, ITEM_TEXT, "key of a map", &key, err);

    if (status)
        return status;
    if (key.n && memchr(key.data, '\0', (size_t)key.n))
        return tenrec_fail(err, TENREC_EPROTOCOL, "key at byte %zu has a zero byte in it", key.at);
    c->size.text += (size_t)key.n + 1;
    return TENREC_OK;
}

static tenrec_status check_items(struct checking *c, const struct item *head, int depth,
                                 tenrec_error *err)
{
    tenrec_status status = TENREC_OK;

    if (depth >= VALUE_DEPTH && head->n)
        return tenrec_fail(err, TENREC_EPROTOCOL, "values are nested deeper than %d at byte %zu",
                           VALUE_DEPTH, head->at);
    c->size.items += (size_t)head->n * (head->kind == ITEM_ARRAY ? sizeof(struct tenrec_value)
                                                                 : sizeof(struct tenrec_entry));
    for (uint64_t i = 0; i < head->n && !status; i++) {
        if (head->kind == ITEM_MAP)
            status = check_key(c, err);
        if (!status)
            status = codec_check_value(c, depth + 1, err);
    }
    return status;
}

tenrec_status codec_check_value(struct checking *c, int depth, tenrec_error *err)
{
    struct item it;
    tenrec_status status = item_next(&c->r, &it, err);

    if (status)
        return status;
    switch (it.kind) {
    case ITEM_TEXT:
        c->size.text += (size_t)it.n + 1;
        break;
    case ITEM_BYTES:
        if (c->copy_bytes)
            c->size.text += (size_t)it.n;
        break;
    case ITEM_ARRAY:
    case ITEM_MAP:
        return check_items(c, &it, depth, err);
    case ITEM_TAG:
        return check_tag(c, &it, depth, err);
    default:
        break;
    }
    return TENREC_OK;
}

/* Values without anything behind them; bytes stay where they are. False: it is
 * another. */
static bool simple_value(const struct item *it, struct tenrec_value *to)
{
    switch (it->kind) {
    case ITEM_INT:
        *to = tenrec_int(it->integer);
        return true;
    case ITEM_BOOL:
        *to = tenrec_bool(it->boolean);
        return true;
    case ITEM_DOUBLE:
        *to = tenrec_double(it->number);
        return true;
    case ITEM_NIL:
        *to = tenrec_nil();
        return true;
    case ITEM_BYTES:
        *to = tenrec_bytes(it->data, (size_t)it->n);
        return true;
    default:
        return false;
    }
}

/* The arguments. A few simple ones are filled in at once: *ret_filled. */
static tenrec_status check_args(struct checking *c, const struct item *head,
                                struct codec_call *call, bool *ret_filled, tenrec_error *err)
{
    struct tenrec_value *to = (struct tenrec_value *)(void *)call->room;
    const size_t room = sizeof call->room;
    bool simple = head->n <= room / sizeof *to;
    tenrec_status status = TENREC_OK;
    struct item it;

    c->size.items += (size_t)head->n * sizeof *to;
    for (uint64_t i = 0; i < head->n && !status; i++) {
        const size_t at = c->r.at;

        status = simple ? item_next(&c->r, &it, err) : TENREC_OK;
        if (status || (simple && simple_value(&it, &to[i])))
            continue;
        simple = false;
        c->r.at = at;
        status = codec_check_value(c, 1, err);
    }
    *ret_filled = simple;
    return status;
}

tenrec_status codec_check_begin(struct checking *c, const struct tenrec_msg *msg, tenrec_error *err)
{
    if (!codec_is_cbor(msg))
        return tenrec_fail(
            err, TENREC_EPROTOCOL,
            "payload of %llu bytes does not begin with d9 d9 f7 at byte 0: it is not "
            "from a Tenrec worker",
            (unsigned long long)msg->payload_len);
    *c = (struct checking){
        .r = { .data = msg->payload, .len = (size_t)msg->payload_len, .at = 3 },
        .n_tensors = msg->n_tensors,
    };
    return TENREC_OK;
}

tenrec_status codec_check_end(const struct checking *c, tenrec_error *err)
{
    if (c->r.at == c->r.len)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPROTOCOL, "%zu bytes too many at byte %zu", c->r.len - c->r.at,
                       c->r.at);
}

/* ---- the second walk: what is there has been checked ------------------------- */

/* Tensors that a backend left without an owner live as long as the message
 * only, so they are copied. */
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

static tenrec_status fill_array(struct filling *f, size_t n, struct tenrec_value *to,
                                tenrec_error *err)
{
    struct tenrec_value *items = arena_items(&f->arena, n, sizeof *items);
    tenrec_status status = TENREC_OK;

    *to = tenrec_array(items, n);
    for (size_t i = 0; i < n && !status; i++)
        status = codec_fill_value(f, &items[i], err);
    return status;
}

static tenrec_status fill_map(struct filling *f, size_t n, struct tenrec_value *to,
                              tenrec_error *err)
{
    struct tenrec_entry *entries = arena_items(&f->arena, n, sizeof *entries);
    tenrec_status status = TENREC_OK;
    struct item key;

    *to = tenrec_map(entries, n);
    for (size_t i = 0; i < n && !status; i++) {
        status = item_next(&f->r, &key, err);
        if (status)
            break;
        entries[i].key = arena_text(&f->arena, key.data, (size_t)key.n, true);
        status = codec_fill_value(f, &entries[i].value, err);
    }
    return status;
}

tenrec_status codec_fill_value(struct filling *f, struct tenrec_value *to, tenrec_error *err)
{
    struct item it;
    struct tenrec_tensor *t;
    tenrec_status status = item_next(&f->r, &it, err);

    if (status)
        return status;
    if (simple_value(&it, to)) {
        if (it.kind == ITEM_BYTES && f->copy_bytes)
            to->u.bytes = arena_text(&f->arena, it.data, (size_t)it.n, false);
        return TENREC_OK;
    }
    switch (it.kind) {
    case ITEM_TEXT:
        *to = tenrec_value_of(TENREC_VALUE_TEXT, it.n);
        to->u.text = arena_text(&f->arena, it.data, (size_t)it.n, true);
        break;
    case ITEM_ARRAY:
        return fill_array(f, (size_t)it.n, to, err);
    case ITEM_MAP:
        return fill_map(f, (size_t)it.n, to, err);
    case ITEM_TAG:
        if (it.n != CODEC_TAG_TENSOR)
            return codec_fill_ref(f, &it, to, err);
        status = item_next(&f->r, &it, err);
        if (!status)
            status = tensor_get(f->msg, (uint32_t)it.integer, &t, err);
        if (!status)
            *to = tenrec_tensor(t);
        return status;
    default:
        *to = tenrec_nil();
    }
    return TENREC_OK;
}

/* ---- whole payloads ------------------------------------------------------------ */

static tenrec_status check_remaining(struct checking *c, int64_t *ret_ms, tenrec_error *err)
{
    struct item it;
    tenrec_status status = item_next(&c->r, &it, err);

    if (status)
        return status;
    if (it.kind == ITEM_NIL) {
        *ret_ms = TENREC_TIMEOUT_NONE;
        return TENREC_OK;
    }
    if (it.kind != ITEM_INT || it.integer < 0)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "remaining time at byte %zu is no count of milliseconds and not null",
                           it.at);
    *ret_ms = it.integer;
    return TENREC_OK;
}

/* One option of a call. Those that are not known must be well-formed. */
static tenrec_status check_option(struct checking *c, struct codec_call *call, tenrec_error *err)
{
    static const char spans[] = CODEC_OPTION_SPANS;
    struct item key, value;
    size_t at;
    tenrec_status status = codec_expect(&c->r, ITEM_TEXT, "key of an option", &key, err);

    if (status)
        return status;
    at = c->r.at;
    status = codec_check_value(c, 2, err);
    if (status || key.n != sizeof spans - 1 || memcmp(key.data, spans, sizeof spans - 1) != 0)
        return status;
    c->r.at = at;
    status = codec_expect(&c->r, ITEM_INT, "bytes of spans", &value, err);
    if (status)
        return status;
    if (value.integer < 0 || value.integer > UINT32_MAX)
        return tenrec_fail(err, TENREC_EPROTOCOL, "%lld bytes of spans are asked for at byte %zu",
                           (long long)value.integer, value.at);
    call->spans_max = (uint32_t)value.integer;
    return TENREC_OK;
}

/* *ret_at is where the first argument begins; 0: they are filled in. */
static tenrec_status check_call(struct checking *c, bool creates, struct codec_call *call,
                                size_t *ret_at, tenrec_error *err)
{
    struct item it, args;
    struct arena_size size;
    bool filled = false;
    tenrec_status status = codec_expect(&c->r, ITEM_ARRAY, "call", &it, err);

    if (status)
        return status;
    if (it.n != CALL_ITEMS + (creates ? 1U : 0U))
        return tenrec_fail(err, TENREC_EPROTOCOL, "call at byte %zu has %llu items, expected %d",
                           it.at, (unsigned long long)it.n, CALL_ITEMS + (creates ? 1 : 0));
    if (creates)
        status = codec_check_creation(c, &call->creation, err);
    if (!status)
        status = codec_expect(&c->r, ITEM_TEXT, "name of a function", &it, err);
    if (status)
        return status;
    call->function = it.data;
    call->function_len = (size_t)it.n;
    status = codec_expect(&c->r, ITEM_ARRAY, "arguments", &args, err);
    *ret_at = c->r.at;
    if (!status)
        status = check_args(c, &args, call, &filled, err);
    if (filled)
        *ret_at = 0;
    if (!status)
        status = check_remaining(c, &call->remaining_ms, err);
    if (status)
        return status;
    call->n = (size_t)args.n;
    call->spans_max = 0;
    size = c->size;
    status = codec_expect(&c->r, ITEM_MAP, "options of a call", &it, err);
    for (uint64_t i = 0; !status && i < it.n; i++)
        status = check_option(c, call, err);
    c->size = size;
    return status ? status : codec_check_end(c, err);
}

static tenrec_status no_memory(const struct arena_size *size, tenrec_error *err)
{
    return tenrec_fail(err, TENREC_ENOMEM, "no memory for a value of %zu bytes",
                       size->items + size->text);
}

tenrec_status codec_read_any_call(const struct tenrec_msg *msg, struct codec_call *ret,
                                  tenrec_error *err)
{
    struct checking c;
    struct filling f;
    struct tenrec_value list = tenrec_nil();
    size_t first = 0;
    tenrec_status status = codec_check_begin(&c, msg, err);

    c.may_refer = true;
    if (!status)
        status = check_call(&c, msg->type == TENREC_MSG_REMOTE_CALL, ret, &first, err);
    if (status)
        return status;
    ret->args = first == 0 && ret->n > 0 ? (struct tenrec_value *)(void *)ret->room : NULL;
    ret->heap = NULL;
    ret->tensors = c.size.tensors;
    ret->refers = c.refers;
    ret->borrowed = 0;
    if (first == 0)
        return TENREC_OK;
    if (c.size.items + c.size.text > sizeof ret->room) {
        ret->heap = malloc(c.size.items + c.size.text);
        if (!ret->heap)
            return no_memory(&c.size, err);
    }
    f = (struct filling){ .r = c.r, .msg = msg };
    f.r.at = first;
    f.arena = arena_at(ret->heap ? ret->heap : ret->room, &c.size);
    status = fill_array(&f, ret->n, &list, err);
    ret->args = list.u.array;
    if (status)
        codec_call_finish(ret);
    return status;
}

tenrec_status codec_read_call(const struct tenrec_msg *msg, struct codec_call *ret,
                              tenrec_error *err)
{
    return codec_simple_read(msg, ret) ? TENREC_OK : codec_read_any_call(msg, ret, err);
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

tenrec_status codec_read_value(const struct tenrec_msg *msg, struct tenrec_value **ret,
                               tenrec_error *err)
{
    return codec_read_value_refs(msg, ret, NULL, err);
}

tenrec_status codec_read_value_refs(const struct tenrec_msg *msg, struct tenrec_value **ret,
                                    bool *ret_refers, tenrec_error *err)
{
    struct checking c;
    struct filling f;
    struct tenrec_value *root;
    tenrec_status status = codec_check_begin(&c, msg, err);

    if (status)
        return status;
    c.copy_bytes = true;
    c.may_refer = ret_refers != NULL;
    c.size.items = sizeof *root;
    status = codec_check_value(&c, 1, err);
    if (!status)
        status = codec_check_end(&c, err);
    if (status)
        return status;
    root = malloc(c.size.items + c.size.text);
    if (!root)
        return no_memory(&c.size, err);
    f = (struct filling){ .r = c.r, .msg = msg, .copy_bytes = true };
    f.r.at = 3;
    f.arena = arena_at(root, &c.size);
    arena_items(&f.arena, 1, sizeof *root);
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
    *ret = c.r.at;
    return true;
}
