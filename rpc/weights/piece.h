/* SPDX-License-Identifier: Apache-2.0 */
/* piece.h - parts of tensors: as the program gives them, as they travel, and which bytes of one
 * are in another. */
#ifndef TENREC_WEIGHTS_PIECE_H
#define TENREC_WEIGHTS_PIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/region.h>
#include <tenrec/weights.h>

enum { PIECE_NAME_MAX = 255 };

/* A box of a tensor. Checked: the box is inside of the shape, and nothing overflows. */
struct piece {
    const char *name; /* borrowed from the box or the value */
    struct tenrec_dtype dtype;
    uint32_t ndim;
    int64_t shape[TENREC_MAX_DIMS], at[TENREC_MAX_DIMS], extent[TENREC_MAX_DIMS];
    uint64_t bytes;    /* of the box */
    uint64_t checksum; /* of a published piece */
    struct tenrec_region_ref ref;
};

const struct tenrec_weights_box *piece_box_at(const struct tenrec_weights_box *boxes, size_t i);

/* Puts the number and the name of a box in front of the text of an error. */
void piece_box_prefix(const struct tenrec_weights_box *boxes, size_t i, tenrec_error *err);

enum piece_use {
    PIECE_COPIED, /* the tensor is in the host, or contiguous */
    PIECE_READ,   /* it is contiguous */
    PIECE_FILLED, /* and writable */
};

/* Makes a list of what the program gives; `ref` and `checksum` are not set.
 *
 * use          what is checked of each tensor
 * ret          owns: free() it; n
 * errors       EINVAL, EUNSUPPORTED (a device that no backend has), ENOMEM; with the number of
 *              the box */
tenrec_status pieces_of_boxes(const struct tenrec_weights_box *boxes, size_t n, enum piece_use use,
                              struct piece **ret, tenrec_error *err);

/* The tensor, or its copy in the host, which waits for its device. ret: shares; NULL after an
 * error. errors: ENOMEM, the driver's */
tenrec_status piece_tensor_in_host(struct tenrec_tensor *t, struct tenrec_tensor **ret,
                                   tenrec_error *err);

/* A number that lists share which have the same boxes in the same order. */
uint64_t pieces_digest(const struct piece *p, size_t n);

/* One value of all, in one block: free() it. NULL: out of memory. */
struct tenrec_value *pieces_pack(const struct piece *p, size_t n);

/* Reads a value of a peer. ret: owns; names are borrowed from the value. errors: EPROTOCOL, ENOMEM
 */
tenrec_status pieces_unpack(const struct tenrec_value *v, struct piece **ret, size_t *ret_n,
                            tenrec_error *err);

/* ---- piece_runs.c: plans ------------------------------------------------------------ */

/* Bytes that are side by side in a region and in a wanted box. */
struct piece_run {
    size_t want;
    uint64_t to, bytes; /* in the wanted box */
    const struct tenrec_region_ref *ref;
    uint64_t from; /* in its region */
};

/* A list of runs, without gaps and overlaps, in the order of the wanted boxes. */
struct piece_plan {
    struct piece_run *run; /* owns */
    size_t n, room;
};

void piece_plan_finish(struct piece_plan *p); /* safe on zeroed memory */

/* Plans to fill the wanted boxes from published pieces, which live as long as the plan.
 * errors: ENOTFOUND (no piece has the name), EINVAL (type, shape; elements in no piece), ETOOBIG,
 * ENOMEM */
tenrec_status piece_plan_make(struct piece_plan *p, const struct piece *want, size_t n_wants,
                              const struct piece *have, size_t n_have, tenrec_error *err);

/* Plans to fill them from the same boxes of another worker. errors: ENOMEM */
tenrec_status piece_plan_same(struct piece_plan *p, const struct piece *want, size_t n_wants,
                              const struct tenrec_region_ref *ref, tenrec_error *err);

/* ---- piece_checksum.c --------------------------------------------------------------- */

/* XXH3, a hash that is fast and not secret. */
uint64_t piece_hash(const void *data, size_t n, uint64_t seed);

/* The checksum of a box whose elements arrive in another one. */
struct piece_sum {
    struct XXH3_state_s *hash; /* owns; NULL: not begun */
    uint64_t done;             /* bytes of the box */
};

/* Returns false without memory. */
bool piece_sum_begin(struct piece_sum *s);
/* Adds the elements of `p` that are there: `arrived` bytes of the box `in` with this memory.
 * Returns true if these are all. */
bool piece_sum_add(struct piece_sum *s, const struct piece *p, const struct piece *in,
                   const void *memory, uint64_t arrived);
uint64_t piece_sum_end(struct piece_sum *s);
void piece_sum_drop(struct piece_sum *s); /* safe on zeroed memory */

/* That of a box in memory of its own. Returns false without memory. */
bool piece_checksum(const struct piece *p, const void *memory, uint64_t *ret);

/* Returns true if all elements of `p` are in `in`. */
bool piece_is_in(const struct piece *p, const struct piece *in);

#endif
