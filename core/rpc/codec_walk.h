/* SPDX-License-Identifier: Apache-2.0 */
/* codec_walk.h - what the files that read payloads share. */
#ifndef TENREC_RPC_CODEC_WALK_H
#define TENREC_RPC_CODEC_WALK_H

#include "rpc/arena.h"
#include "rpc/codec.h"
#include "rpc/item.h"
#include "rpc/item_write.h"

/* The first walk: checks all, counts what the second one needs. */
struct checking {
    struct item_reader r;
    uint32_t n_tensors;
    struct arena_size size;
    bool copy_bytes; /* else they stay where they are */
    bool may_refer;  /* references and objects have a place here */
    bool refers;     /* there are some */
};

/* The second walk. */
struct filling {
    struct item_reader r;
    const struct tenrec_msg *msg;
    struct arena arena;
    bool copy_bytes;
};

/* An item of this kind, or an error that says what it was expected as. */
tenrec_status codec_expect(struct item_reader *r, enum item_kind kind, const char *what,
                           struct item *ret, tenrec_error *err);

tenrec_status codec_check_begin(struct checking *c, const struct tenrec_msg *msg,
                                tenrec_error *err);
tenrec_status codec_check_value(struct checking *c, int depth, tenrec_error *err);
tenrec_status codec_check_end(const struct checking *c, tenrec_error *err);
tenrec_status codec_fill_value(struct filling *f, struct tenrec_value *to, tenrec_error *err);

/* What stands behind the tag of a reference or an object, in codec_ref.c. */
tenrec_status codec_check_ref(struct checking *c, const struct item *tag, int depth,
                              tenrec_error *err);
tenrec_status codec_fill_ref(struct filling *f, const struct item *tag, struct tenrec_value *to,
                             tenrec_error *err);

/* The ids that begin a remote creation. */
tenrec_status codec_check_creation(struct checking *c, struct codec_creation *ret,
                                   tenrec_error *err);

/* Writing: what stands for a reference or an object. */
tenrec_status codec_make_ref(struct codec_refs *refs, const struct tenrec_value *v,
                             struct codec_ref **ret, tenrec_error *err);
size_t codec_fork_size(const struct rref_fork *f, bool deref);
void codec_put_fork(struct item_writer *w, const struct rref_fork *f, bool deref);

#endif
