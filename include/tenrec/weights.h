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
 * A set is a name, and one worker, the keeper, which records what its members say of it. Its
 * versions have numbers that grow. A worker that has pulled a version gives it to others, so that
 * many generators form a chain. A pull has the whole version or fails. docs/weights.md.
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

/* A part of a named tensor: what a trainer publishes, or a generator wants. A box, as the tensor in
 * whose memory it is, has a first element and an extent in each dimension. */
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

/* Makes a handle on a set. Sends nothing: the keeper makes the set when it is first published.
 *
 * set      1 to 127 bytes; copied
 * keeper   name of the worker that keeps the record, the same at all members; copied
 * ret      owns: close it, before its worker is dropped
 * errors   EINVAL (names), ENOMEM
 */
tenrec_status tenrec_weights_open(struct tenrec_worker *w, const char *set, const char *keeper,
                                  struct tenrec_weights **ret, tenrec_error *err);

/* Withdraws all that the handle has published and pulled, without waiting for readers. NULL is
 * allowed; also after shutdown. No call on it may be under way. */
void tenrec_weights_close(struct tenrec_weights *s);

/* Publishes a version, or one of `publishers` parts of it, and returns when the version is visible:
 * when all parts are there. The boxes of all parts together are the version.
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

/* Fills the tensors of the boxes with their elements of a version; waits until there is such a
 * version. Reads from the publishers, or from a worker that has pulled the same boxes or pulls
 * them now; then this worker is such a source itself, until it pulls again, withdraws or closes.
 * So the tensors may not be changed but by these calls.
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

/* Records at the keeper what became of a version that this handle has pulled: NULL if the program
 * has applied it, else why not.
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

/* Ends what this handle has published or pulled of a version: its readers fail with ESTALE, or go
 * on with other holders. After OK no byte of the memory is read or changes through the set.
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
