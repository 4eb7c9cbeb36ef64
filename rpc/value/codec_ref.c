/* SPDX-License-Identifier: Apache-2.0 */
/* codec_ref.c - references and objects in payloads (docs/wire.md). Reading returns values that
 * hold the records of the wire; rrefs_take makes references and objects of them. */
#include "rpc/value/codec_walk.h"

#include <stdlib.h>

#include "core/base/memory.h"
#include "rpc/value/value.h"

/* The last item of a reference may be absent. */
enum { FORK_ITEMS = 7, DEREF_ITEMS = 4, OBJECT_ITEMS = 2 };

/* ---- reading ---------------------------------------------------------------------- */

/* Reads an array of `least` to `most` integers that are not negative. */
static tenrec_status read_numbers(struct cbor_reader *r, size_t least, size_t most, int64_t *ret,
                                  tenrec_error *err)
{
    struct cbor_item it;
    tenrec_status status = codec_expect(r, CBOR_KIND_ARRAY, "remote reference", &it, err);
    const size_t n = status == TENREC_OK ? (size_t)it.n : 0;

    if (status == TENREC_OK && (it.n < least || it.n > most))
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "remote reference at byte %zu has %llu items, expected %zu", it.at,
                           (unsigned long long)it.n, least);
    for (size_t i = 0; i < n && status == TENREC_OK; i++) {
        status = codec_expect(r, CBOR_KIND_INT, "part of a remote reference", &it, err);
        if (status == TENREC_OK && it.integer < 0)
            return tenrec_fail(err, TENREC_EPROTOCOL, "%lld in a remote reference at byte %zu",
                               (long long)it.integer, it.at);
        ret[i] = it.integer;
    }
    return status;
}

static tenrec_status read_fork(struct cbor_reader *r, bool deref, struct rref_fork *ret,
                               tenrec_error *err)
{
    int64_t n[FORK_ITEMS] = { 0 };
    const size_t at = cbor_reader_offset(r);
    tenrec_status status = read_numbers(r, deref ? DEREF_ITEMS : FORK_ITEMS - 1,
                                        deref ? DEREF_ITEMS : FORK_ITEMS, n, err);

    if (status == TENREC_OK && (n[4] > INT16_MAX || n[5] > INT16_MAX))
        status = tenrec_fail(err, TENREC_EPROTOCOL,
                             "remote reference at byte %zu names worker %lld, ids end at %d", at,
                             (long long)(n[4] > INT16_MAX ? n[4] : n[5]), INT16_MAX);
    *ret = (struct rref_fork){ .id = { n[0], n[1] },
                               .fork = { n[2], n[3] },
                               .owner = (tenrec_peer)n[4],
                               .parent = (tenrec_peer)n[5],
                               .version = n[6] };
    return status;
}

static tenrec_status check_object(struct checking *c, int depth, tenrec_error *err)
{
    struct cbor_item it;
    tenrec_status status = codec_expect(&c->r, CBOR_KIND_ARRAY, "object", &it, err);

    if (status == TENREC_OK && (it.n != OBJECT_ITEMS || depth >= VALUE_DEPTH))
        return tenrec_fail(err, TENREC_EPROTOCOL, "object at byte %zu: %s", it.at,
                           it.n != OBJECT_ITEMS ? "a type and a value are expected"
                                                : "values are nested too deep");
    if (status == TENREC_OK)
        status = codec_expect(&c->r, CBOR_KIND_TEXT, "type of an object", &it, err);
    if (status != TENREC_OK)
        return status;
    if (it.n == 0 || it.n > TENREC_NAME_MAX || memchr(it.data, '\0', (size_t)it.n))
        return tenrec_fail(err, TENREC_EPROTOCOL, "type of an object at byte %zu is not a name",
                           it.at);
    c->size.items += sizeof(struct tenrec_entry);
    c->size.text += (size_t)it.n + 1;
    return codec_check_value(c, depth + 1, err);
}

tenrec_status codec_check_ref(struct checking *c, const struct cbor_item *tag, int depth,
                              tenrec_error *err)
{
    struct rref_fork fork;

    if (tag->n != CODEC_TAG_RREF && tag->n != CODEC_TAG_DEREF && tag->n != CODEC_TAG_OBJECT)
        return tenrec_fail(err, TENREC_EPROTOCOL, "unknown tag %llu at byte %zu",
                           (unsigned long long)tag->n, tag->at);
    if (!c->may_refer)
        return tenrec_fail(err, TENREC_EPROTOCOL, "unexpected reference or object at byte %zu",
                           tag->at);
    c->refers = c->size.tensors = true;
    if (tag->n == CODEC_TAG_OBJECT)
        return check_object(c, depth, err);
    c->size.items += sizeof fork;
    return read_fork(&c->r, tag->n == CODEC_TAG_DEREF, &fork, err);
}

tenrec_status codec_fill_ref(struct filling *f, const struct cbor_item *tag,
                             struct tenrec_value *to, tenrec_error *err)
{
    const bool deref = tag->n == CODEC_TAG_DEREF;
    struct tenrec_entry *entry;
    struct rref_fork *fork;
    tenrec_status status;
    struct cbor_item it;

    if (tag->n != CODEC_TAG_OBJECT) {
        fork = value_block_items(&f->arena, 1, sizeof *fork);
        *to = tenrec_value_of(TENREC_VALUE_RREF, 0);
        to->flags = CODEC_UNTAKEN | (deref ? CODEC_DEREF : 0);
        to->u.bytes = fork;
        return read_fork(&f->r, deref, fork, err);
    }
    entry = value_block_items(&f->arena, 1, sizeof *entry);
    *to = tenrec_value_of(TENREC_VALUE_OBJECT, 0);
    to->flags = CODEC_UNTAKEN;
    to->u.map = entry;
    status = cbor_read_item(&f->r, &it, err); /* the array */
    if (status == TENREC_OK)
        status = cbor_read_item(&f->r, &it, err);
    if (status != TENREC_OK)
        return status;
    entry->key = value_block_text(&f->arena, it.data, (size_t)it.n, true);
    return codec_fill_value(f, &entry->value, err);
}

tenrec_status codec_read_creation(struct cbor_reader *r, struct codec_creation *ret,
                                  tenrec_error *err)
{
    struct rref_fork fork;
    tenrec_status status = read_fork(r, true, &fork, err);

    *ret = (struct codec_creation){ fork.id, fork.fork };
    return status;
}

bool codec_may_refer(const struct tenrec_msg *msg)
{
    static const unsigned char tag[] = { 0xd9, 0xcd, 0x75 }; /* of a reference */
    const unsigned char *at = msg->payload, *end = at + msg->payload_len;

    while (end - at >= (ptrdiff_t)sizeof tag && (at = memchr(at, tag[0], (size_t)(end - at)))) {
        if (end - at < (ptrdiff_t)sizeof tag)
            return false;
        if (memcmp(at, tag, sizeof tag) == 0)
            return true;
        at++;
    }
    return false;
}

/* ---- writing -------------------------------------------------------------------------- */

static struct codec_ref *next_ref(struct codec_refs *refs)
{
    if (refs->n == refs->room) {
        size_t room = refs->room ? refs->room * 2 : 4;
        struct codec_ref *more = memory_resize(refs->ref, room, sizeof *more);
        if (!more)
            return NULL;
        refs->ref = more;
        refs->room = room;
    }
    refs->ref[refs->n] = (struct codec_ref){ .type = NULL };
    return &refs->ref[refs->n];
}

tenrec_status codec_make_ref(struct codec_refs *refs, const struct tenrec_value *v, bool deref,
                             struct codec_ref **ret, tenrec_error *err)
{
    struct codec_ref *ref;
    tenrec_status status;

    if (!refs)
        return tenrec_fail(err, TENREC_EUNSUPPORTED, "%s can be sent in calls and answers only",
                           tenrec_value_type_name(v->type));
    if (!v->u.rref)
        return tenrec_fail(err, TENREC_EINVAL, "%s is NULL", tenrec_value_type_name(v->type));
    ref = next_ref(refs);
    if (!ref)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory to send %s",
                           tenrec_value_type_name(v->type));
    if (v->type == TENREC_VALUE_OBJECT)
        status = object_encode(v->u.object, &ref->encoded, &ref->type, err);
    else
        status = refs->fork(refs, v->u.rref, deref, &ref->fork, err);
    if (status != TENREC_OK)
        return status;
    refs->n++;
    *ret = ref;
    return TENREC_OK;
}

static size_t numbers_of(const struct rref_fork *f, bool deref, int64_t n[FORK_ITEMS])
{
    n[0] = f->id.on;
    n[1] = f->id.local;
    n[2] = f->fork.on;
    n[3] = f->fork.local;
    n[4] = f->owner;
    n[5] = f->parent;
    n[6] = f->version;
    if (deref)
        return DEREF_ITEMS;
    return f->version > 0 ? FORK_ITEMS : FORK_ITEMS - 1;
}

size_t codec_fork_size(const struct rref_fork *f, bool deref)
{
    int64_t number[FORK_ITEMS];
    size_t n = numbers_of(f, deref, number), size = cbor_head_size(n);

    for (size_t i = 0; i < n; i++)
        size += cbor_int_size(number[i]);
    return size;
}

void codec_put_fork(struct cbor_writer *w, const struct rref_fork *f, bool deref)
{
    int64_t number[FORK_ITEMS];
    size_t n = numbers_of(f, deref, number);

    cbor_write_array(w, n);
    for (size_t i = 0; i < n; i++)
        cbor_write_int(w, number[i]);
}

void codec_refs_finish(struct codec_refs *refs)
{
    for (size_t i = 0; i < refs->n; i++)
        tenrec_value_drop(refs->ref[i].encoded);
    free(refs->ref);
    refs->ref = NULL;
    refs->n = refs->room = 0;
}
