/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/weights.h - versions of weights, from trainers to many generators.
 *
 *     tenrec_weights_open(w, "policy", "trainer0", &s, err);     at each worker that takes part
 *
 *     tenrec_weights_publish(s, 7, boxes, n, NULL, err);         at a trainer
 *     tenrec_weights_wait(s, 7, generators, 60000, &v, err);     until they have reported
 *
 *     tenrec_weights_pull(s, TENREC_WEIGHTS_LATEST, boxes, n, NULL, &version, err);  at a generator
 *     tenrec_weights_report(s, version, NULL, err);              it has applied them
 *
 * A set has a name and a keeper, the worker that records the reports of its members. The numbers
 * of its versions grow. A worker that has pulled a version passes it on, so many generators form a
 * chain. A pull gets the whole version or fails. docs/weights.md has the details.
 */
#ifndef TENREC_WEIGHTS_H
#define TENREC_WEIGHTS_H

#include <tenrec/future.h>
#include <tenrec/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct tenrec_weights; /* opaque */
struct tenrec_worker;

#define TENREC_WEIGHTS_LATEST ((int64_t)0) /* in the place of a version, which is 1 or more */

/* A part of a named tensor, which a trainer publishes or a generator wants. It has a first element
 * and an extent in each dimension. */
struct tenrec_weights_box {
    uint32_t size; /* sizeof(struct tenrec_weights_box); the same in all boxes of a list */
    uint32_t reserved;
    const char *name;             /* 1 to 255 bytes */
    struct tenrec_tensor *tensor; /* the elements: its type, and its shape, are those of the box */
    const int64_t *shape;         /* of the whole tensor; NULL: the box is the whole */
    const int64_t *at;            /* the first element of the box; NULL: zeros */
};

enum tenrec_weights_flags {
    TENREC_WEIGHTS_IN_PLACE = 1u << 0, /* of a publish: no copy is made */
};

/* A zeroed struct with size set means the defaults. */
struct tenrec_weights_options {
    uint32_t size;       /* sizeof(struct tenrec_weights_options) */
    uint32_t flags;      /* enum tenrec_weights_flags */
    int64_t timeout_ms;  /* of the whole; TENREC_TIMEOUT_DEFAULT: the rpc_timeout */
    uint32_t publishers; /* of a publish: workers that each publish a part of the version; 0: 1 */
    uint32_t reserved;
    int64_t after; /* of a pull of the latest version: waits for a version newer than this */
};

/* Makes a handle on a set. It sends nothing, since the keeper creates the set at the first
 * publish.
 *
 * set      1 to 127 bytes; copied
 * keeper   name of the worker that keeps the record, the same at all members; copied
 * ret      owns: close it, before its worker is dropped
 * errors   EINVAL (names), ENOMEM
 */
tenrec_status tenrec_weights_open(struct tenrec_worker *w, const char *set, const char *keeper,
                                  struct tenrec_weights **ret, tenrec_error *err);

/* Withdraws everything that the handle has published and pulled, without waiting for readers. NULL
 * is allowed, and also a close after shutdown. No call on the handle may be in progress. */
void tenrec_weights_close(struct tenrec_weights *s);

/* Publishes a version, or one of `publishers` parts of it, and returns when the version is
 * visible, which is when all parts have arrived. The boxes of all parts together form the version.
 *
 * By default the elements are copied first, and the copy is freed once a newer version is visible
 * and no reader has a lease on this one. With TENREC_WEIGHTS_IN_PLACE readers read the tensors,
 * which may change only after tenrec_weights_withdraw has returned OK.
 *
 * boxes    borrowed during the call; in place, the tensors are shared until the withdrawal
 * errors   EEXIST (the version, or a newer one, is visible; or this worker has published its part),
 *          EINVAL (a box; the number of publishers is not that of another part), EBUSY (in place:
 *          the memory is still published), ETIMEDOUT (other parts are missing), EUNSUPPORTED
 *          (a device that no backend of this process has), EWOULDBLOCK, ENOMEM, and those of a
 *          call to the keeper
 * threads  any; not an inline handler or a callback
 */
tenrec_status tenrec_weights_publish(struct tenrec_weights *s, int64_t version,
                                     const struct tenrec_weights_box *boxes, size_t n,
                                     const struct tenrec_weights_options *options,
                                     tenrec_error *err);

/* Waits until the version exists, and fills the tensors of the boxes with its elements. It reads
 * from the publishers, or from a worker that has pulled or is pulling the same boxes. This worker
 * then becomes such a source itself, until it pulls again, withdraws or closes. Until then only
 * these calls may change the tensors.
 *
 * version      TENREC_WEIGHTS_LATEST, or the number of a version that is not replaced
 * boxes        borrowed during the call; contiguous, without overlaps
 * ret_version  may be NULL; 0 after an error: then the elements are undefined, and bytes may still
 *              arrive in the tensors, which stay shared so long
 * errors   ESTALE (the version has been replaced, or all its holders are gone), EINVAL (a box; a
 *          type or shape that is not the published one; elements that no publisher has), ENOTFOUND
 *          (no such tensor), EPROTOCOL (a checksum), ETIMEDOUT, EBUSY (the memory is published in
 *          place), EUNSUPPORTED (a device that no backend of this process has, or this worker is no
 *          member of the group), EWOULDBLOCK, ENOMEM, and those of a call to the keeper
 * threads  any; not an inline handler or a callback
 */
tenrec_status tenrec_weights_pull(struct tenrec_weights *s, int64_t version,
                                  const struct tenrec_weights_box *boxes, size_t n,
                                  const struct tenrec_weights_options *options,
                                  int64_t *ret_version, tenrec_error *err);

/* Reports a version that this handle has pulled to the keeper: NULL if the program has applied it,
 * or else the reason why not.
 *
 * errors   ENOTFOUND (it has not pulled that version, or a newer one since), and those of a call to
 *          the keeper
 */
tenrec_status tenrec_weights_report(struct tenrec_weights *s, int64_t version,
                                    const tenrec_error *why, tenrec_error *err);

/* Waits until the version is visible and that many workers have reported about it, and returns
 *
 *     { version: 7,
 *       tensors: [{ name: "w", dtype: "float32", shape: [2, 3] }],    not of a replaced version
 *       holders: [{ worker: "gen1", version: 7, state: "publishes", "pulls", "has", "applied" or
 *                   "failed", error: "" }] }    of all versions
 *
 * version  TENREC_WEIGHTS_LATEST: the newest that is visible
 * ms       at most this long; TENREC_TIMEOUT_DEFAULT: the rpc_timeout
 * ret      owns: tenrec_value_drop it; NULL discards the value
 * errors   ETIMEDOUT, and those of a call to the keeper
 */
tenrec_status tenrec_weights_wait(struct tenrec_weights *s, int64_t version, size_t reports,
                                  int64_t ms, struct tenrec_value **ret, tenrec_error *err);

/* Withdraws the parts of a version that this handle has published or pulled. Their readers fail
 * with ESTALE, or continue with other holders. After OK the set neither reads nor changes the
 * memory.
 *
 * ms       at most this long; TENREC_TIMEOUT_DEFAULT: the rpc_timeout
 * errors   ENOTFOUND (nothing of the version is here, or what a withdrawal has waited for in vain
 *          has ended since), ETIMEDOUT (names the workers that still read; a further call waits for
 *          them), EWOULDBLOCK
 */
tenrec_status tenrec_weights_withdraw(struct tenrec_weights *s, int64_t version, int64_t ms,
                                      tenrec_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
