/* SPDX-License-Identifier: Apache-2.0 */
/* codec_walk.h - the walks over payloads, shared by the codec_*.c files. */
#ifndef TENREC_VALUE_CODEC_WALK_H
#define TENREC_VALUE_CODEC_WALK_H

#include "rpc/value/cbor_reader.h"
#include "rpc/value/cbor_writer.h"
#include "rpc/value/codec.h"
#include "rpc/value/value_block.h"

#define CODEC_BEGIN_SIZE 3 /* bytes of the tag before each payload */
#define CODEC_CALL_ITEMS 4 /* one more in a remote creation */

/* Begins nearly all calls: the tag before each payload, and the array of items. */
static const unsigned char codec_call_begin[] = { 0xd9, 0xd9, 0xf7,
                                                  CBOR_BYTE(CBOR_MAJOR_ARRAY, CODEC_CALL_ITEMS) };

/* The options of a call whose only one is the context of its trace, up to the context. */
static const unsigned char codec_trace_begin[] = { CBOR_BYTE(CBOR_MAJOR_MAP, 1),
                                                   CBOR_BYTE(CBOR_MAJOR_TEXT, 5),
                                                   't',
                                                   'r',
                                                   'a',
                                                   'c',
                                                   'e',
                                                   CBOR_BYTE(CBOR_MAJOR_BYTES, CBOR_LOW_1),
                                                   sizeof(struct trace_context) };

/* The first walk: checks each item, and counts the memory for the second walk. */
struct checking {
    struct cbor_reader r;
    uint32_t n_tensors;
    struct value_block_size size;
    size_t size_max; /* of size.items: checked where an array or a map begins */
    bool copy_bytes; /* else bytes stay in the message */
    bool may_refer;  /* references and objects are accepted */
    bool refers;     /* a reference or an object was found */
};

/* The second walk. */
struct filling {
    struct cbor_reader r;
    const struct tenrec_msg *msg;
    struct value_block arena;
    bool copy_bytes;
};

/* Reads an item of this kind, which error texts call `label`. errors: EPROTOCOL */
tenrec_status codec_expect(struct cbor_reader *r, enum cbor_kind kind, const char *label,
                           struct cbor_item *ret, tenrec_error *err);

tenrec_status codec_check_begin(struct checking *c, const struct tenrec_msg *msg,
                                tenrec_error *err);
tenrec_status codec_check_value(struct checking *c, int depth, tenrec_error *err);
/* The payload must end here. */
tenrec_status codec_check_end(const struct cbor_reader *r, tenrec_error *err);
tenrec_status codec_fill_value(struct filling *f, struct tenrec_value *to, tenrec_error *err);

/* The content of the tags of references and objects, in codec_ref.c. */
tenrec_status codec_check_ref(struct checking *c, const struct cbor_item *tag, int depth,
                              tenrec_error *err);
tenrec_status codec_fill_ref(struct filling *f, const struct cbor_item *tag,
                             struct tenrec_value *to, tenrec_error *err);

/* The content of the tag of a region, in codec_region.c. The size and the writer include the tag.
 */
tenrec_status codec_read_region(struct cbor_reader *r, struct tenrec_region_ref *ret,
                                tenrec_error *err);
size_t codec_region_size(const struct tenrec_region_ref *r);
void codec_put_region(struct cbor_writer *w, const struct tenrec_region_ref *r);

/* The ids that begin a remote creation. */
tenrec_status codec_read_creation(struct cbor_reader *r, struct codec_creation *ret,
                                  tenrec_error *err);

/* Writes a value of a single item. Returns false for other values. */
CBOR_INLINE bool codec_write_single(struct cbor_writer *w, const struct tenrec_value *v)
{
    switch (v->type) {
    case TENREC_VALUE_NIL:
        cbor_write_nil(w);
        return true;
    case TENREC_VALUE_BOOL:
        cbor_write_bool(w, v->u.boolean);
        return true;
    case TENREC_VALUE_INT:
        cbor_write_int(w, v->u.integer);
        return true;
    case TENREC_VALUE_DOUBLE:
        cbor_write_double(w, v->u.number);
        return true;
    case TENREC_VALUE_TEXT:
        cbor_write_text(w, v->u.text, (size_t)v->n);
        return true;
    case TENREC_VALUE_BYTES:
        cbor_write_bytes(w, v->u.bytes, (size_t)v->n);
        return true;
    default:
        return false;
    }
}

/* Writing: the record of a reference or an object. */
tenrec_status codec_make_ref(struct codec_refs *refs, const struct tenrec_value *v, bool deref,
                             struct codec_ref **ret, tenrec_error *err);
size_t codec_fork_size(const struct rref_fork *f, bool deref);
void codec_put_fork(struct cbor_writer *w, const struct rref_fork *f, bool deref);

/* As those of codec.h without `any`, which call them for a payload that is not simple: in two
 * walks. */
tenrec_status codec_read_any_head(const struct tenrec_msg *msg, struct codec_head *ret,
                                  tenrec_error *err);
tenrec_status codec_read_any_args(const struct tenrec_msg *msg, const struct codec_head *head,
                                  struct codec_call *ret, tenrec_error *err);
tenrec_status codec_read_any_value(const struct tenrec_msg *msg, struct tenrec_value **ret,
                                   bool *ret_refers, tenrec_error *err);
tenrec_status codec_write_any_value(const struct tenrec_value *value, int32_t type,
                                    struct codec_refs *refs, struct tenrec_msg **ret,
                                    tenrec_error *err);

#endif
