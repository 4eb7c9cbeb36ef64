/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/region.h - regions: memory of a worker that its peers read and write without a function.
 *
 *     tenrec_region_new(w, tensor, TENREC_REGION_READ, &r, err);      at the owner
 *     tenrec_region_describe(r, &ref);                                tenrec_value_region(&ref)
 *
 *     struct tenrec_bulk entry = { .size = sizeof entry, .remote = ref, .bytes = n, .local = t };
 *     tenrec_bulk_async(w, &entry, 1, NULL, &f, err);                 at a peer
 *
 *     tenrec_region_revoke(r, 5000, err);                             at the owner
 *     tenrec_region_drop(r);
 *
 * A transfer does not involve the owner's program. Once tenrec_region_revoke has returned OK,
 * Tenrec neither reads nor changes the memory. docs/regions.md has the details.
 */
#ifndef TENREC_REGION_H
#define TENREC_REGION_H

#include <tenrec/future.h>
#include <tenrec/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct tenrec_region; /* opaque */
struct tenrec_worker;

enum tenrec_region_rights {
    TENREC_REGION_READ = 1u << 0,  /* members of the group may read it */
    TENREC_REGION_WRITE = 1u << 1, /* likewise write */
    TENREC_REGION_OWN = 1u << 2, /* for tenrec_region_new: a region of its own, also of memory that
                                    is registered, so that its revoke ends no other */
};

/* Names a region to other workers of its group. It is plain data: send it as a value of calls
 * (tenrec_value_region), or as bytes in any way. Its holder has the rights that it names. */
struct tenrec_region_ref {
    uint32_t size;   /* sizeof(struct tenrec_region_ref) */
    uint32_t rights; /* TENREC_REGION_READ, TENREC_REGION_WRITE or both */
    uint64_t life;   /* of the owner: a number drawn at each start of it */
    uint64_t number;
    uint64_t generation; /* of that number, which a later region may have again */
    uint64_t length;     /* bytes */
    uint64_t key[2];     /* random; a transfer with another is refused */
    char owner[128];     /* name of the worker */
};

/* Registers the elements of `tensor`. If the memory is already registered with the same rights, it
 * returns the same region, unless TENREC_REGION_OWN is among the rights. Drop the region once for
 * each call.
 *
 * tensor   shared until the region has been dropped and its last transfer has ended; contiguous.
 *          On a device transfers are ordered after the work on it that this thread has queued now
 * ret      shares: drop it
 * errors   EINVAL (rights; not contiguous, empty, or read-only and to be written), EEXIST (the
 *          memory is registered with other rights), EUNSUPPORTED (a device that no backend of this
 *          process has), ENOMEM, EOS, those of the driver, ESHUTDOWN
 * threads  any
 */
tenrec_status tenrec_region_new(struct tenrec_worker *w, struct tenrec_tensor *tensor,
                                uint32_t rights, struct tenrec_region **ret, tenrec_error *err);

/* Fills *ret, also after a revoke. */
void tenrec_region_describe(const struct tenrec_region *r, struct tenrec_region_ref *ret);

/* The number of transfers that use the memory now. */
uint64_t tenrec_region_pending(const struct tenrec_region *r);

/* Ends the region for all its holders: from now on transfers fail with ESTALE. Waits until the
 * transfers that use the memory have ended. After OK Tenrec neither reads nor changes the memory.
 * After ETIMEDOUT new transfers are also refused, and another call waits for the remaining
 * transfers.
 *
 * ms       at most this long; TENREC_TIMEOUT_DEFAULT: 60 s; TENREC_TIMEOUT_NONE: for ever
 * errors   ETIMEDOUT (names the workers whose transfers have not ended), EINVAL (negative ms),
 *          EWOULDBLOCK (transfers are under way, and an inline function or a callback may not wait)
 * threads  any, also several at once
 */
tenrec_status tenrec_region_revoke(struct tenrec_region *r, int64_t ms, tenrec_error *err);

/* With the last drop the region ends as by a revoke, but nothing waits: the tensor is dropped once
 * no transfer uses it. NULL is allowed; also after shutdown. */
void tenrec_region_drop(struct tenrec_region *r);

enum tenrec_bulk_direction {
    TENREC_BULK_READ = 0,  /* from the region to the local tensor */
    TENREC_BULK_WRITE = 1, /* from the local tensor to the region */
};

/* One transfer of a batch, between bytes of a region and of a tensor. */
struct tenrec_bulk {
    uint32_t size;      /* sizeof(struct tenrec_bulk); the same in all entries of a batch */
    uint32_t direction; /* enum tenrec_bulk_direction */
    struct tenrec_region_ref remote;
    uint64_t remote_offset, bytes; /* 0 bytes: nothing is sent */
    struct tenrec_tensor *local;   /* contiguous; shared until the bytes of the entry are not used
                                      any more. On a device the transfer is ordered after the work
                                      that this thread has queued */
    uint64_t local_offset;         /* in bytes, from the first element */
};

/* A zeroed struct with size set means the defaults. */
struct tenrec_bulk_options {
    uint32_t size;      /* sizeof(struct tenrec_bulk_options) */
    uint32_t flags;     /* 0, or TENREC_WAIT_NEXT (rpc.h) */
    int64_t timeout_ms; /* of the whole; TENREC_TIMEOUT_DEFAULT: the rpc_timeout */

    /* A registered function that the owner runs once, after all entries have ended well: it sees
     * the bytes. All entries have that one owner. NULL: none */
    const char *then;
    const struct tenrec_value *args; /* its arguments; copied */
    size_t n_args;

    /* Futures for the earlier steps of the batch: of NULL none is made. Each shares: drop it. */
    struct tenrec_future **ret_free; /* your buffers are free: no byte of the local tensors is read
                                        or written any more. Never fails; also after a timeout */
    struct tenrec_future **ret_visible; /* the bytes are visible: all entries have ended, or one has
                                           failed; `then` has not run */
};

/* Begins a batch of transfers. Entries have no order among themselves, so the targets of its reads
 * may not overlap, nor those of its writes.
 *
 * The future is done once all entries have ended well and `then` has returned: the bytes read are
 * in the local tensors, those written are in the regions, and its value is that of `then`, or nil.
 * Else it has the error of the first entry of the list that failed, with the number of the entry in
 * its text, while other entries may have ended well; or that of the call of `then`. A timeout, and
 * tenrec_future_cancel, end the wait and not the transfer: bytes may still arrive in the region, or
 * in a local tensor, which stays shared so long. After a failed entry or a cancel during the
 * transfer `then` does not run.
 *
 * entries  borrowed during the call
 * options  borrowed; NULL: the defaults
 * ret      shares: drop it
 * errors   EINVAL (of an entry: bounds, targets that overlap, a tensor that is not contiguous or is
 *          read-only; of `then`: entries of several owners), EPERM (the reference has not that
 *          right), EPEER_UNKNOWN, EUNSUPPORTED (a device that no backend of this process has),
 *          ENOMEM, ESHUTDOWN: nothing was sent.
 *          Of the future: ESTALE (revoked, or of a former life of the owner), EPERM (another key),
 *          ENOTFOUND, EINVAL, ETIMEDOUT, EPEER_LOST, EAGAIN (the queue to the owner is full),
 *          EUNSUPPORTED (the owner has no regions, or this worker is no member of its group),
 *          ESHUTDOWN, those of a driver, and those of tenrec_rpc_async for `then`
 * threads  any, also inline functions and callbacks
 */
tenrec_status tenrec_bulk_async(struct tenrec_worker *w, const struct tenrec_bulk *entries,
                                size_t n, const struct tenrec_bulk_options *options,
                                struct tenrec_future **ret, tenrec_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
