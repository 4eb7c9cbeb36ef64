/* SPDX-License-Identifier: Apache-2.0 */
/* region_copy.h - bytes of tensors on devices: messages carry a copy of them in the host.
 *
 * The copies run on threads of their own, since they wait for the device: neither the threads that
 * read messages nor the functions of the program wait with them. */
#ifndef TENREC_REGION_REGION_COPY_H
#define TENREC_REGION_REGION_COPY_H

#include "rpc/future/pool.h"
#include "rpc/region/regions.h"

/* Bytes of a region, or of a local tensor. */
struct region_bytes {
    struct tenrec_tensor *of; /* on a device: with a stream, on which its copies are queued */
    uint64_t offset, bytes;
    struct tenrec_tensor *host; /* owns: the memory of the copy; NULL: `of` is in the host */
};

/* Makes the memory for a copy if `of` is on a device; the other fields are set. errors: ENOMEM */
tenrec_status region_bytes_stage(struct region_bytes *b, tenrec_error *err);
void region_bytes_unstage(struct region_bytes *b);
bool region_bytes_staged(const struct region_bytes *b, size_t n); /* any of them */

/* A tensor of uint8 of the copy, or of the bytes where they are; `free_fn` gets `arg`.
 * errors: ENOMEM */
tenrec_status region_bytes_new(const struct region_bytes *b, tenrec_tensor_free_fn *free_fn,
                               void *arg, struct tenrec_tensor **ret, tenrec_error *err);

/* Copies between devices and the host. */
struct region_copy {
    struct pool_task task; /* first */
    struct tenrec_worker *w;
    struct region_bytes *bytes; /* `n`, borrowed until `done` */
    size_t n;
    bool to_device;

    /* All copies have ended; `why`: one has failed, or none began. Called once, on any thread,
     * which is inside the worker if `entered`. Frees the copy. */
    void (*done)(struct region_copy *c, bool entered, const tenrec_error *why);
};

/* Begins the copies. The worker is entered. */
void region_copy_begin(struct region_copy *c);

/* Waits for the end of all copies. No thread is inside the worker. */
void region_copies_close(struct region_table *t);

#endif
