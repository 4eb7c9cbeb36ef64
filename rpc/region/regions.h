/* SPDX-License-Identifier: Apache-2.0 */
/* regions.h - the table of regions, and the transfers that use their memory: its pins. */
#ifndef TENREC_REGION_REGIONS_H
#define TENREC_REGION_REGIONS_H

#include "rpc/call/service.h"
#include "rpc/future/worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenrec/region.h>

struct pool;
struct region_bytes;

/* A number, and the region that has it. A number is given again with a higher generation. */
struct region_slot {
    struct tenrec_region *region; /* until it has neither holders nor pins; NULL: free */
    uint64_t generation;
};

/* Of a worker. Shared by it and by its regions, which the program may drop later. */
struct region_table {
    pthread_mutex_t lock;         /* guards all fields here, and those of the regions */
    struct region_writes *writes; /* owns; NULL: no region was written yet */
    struct pool *copies;          /* owns: threads for copies of device memory; NULL: none yet */
    pthread_cond_t quiet;         /* the last pin of a region has ended; monotonic */
    size_t refs;
    struct region_slot *slot; /* owns; index: the number */
    size_t n, room;
    uint64_t life;       /* of this start of the worker */
    uint64_t n_stale;    /* transfers refused with ESTALE */
    uint64_t n_repeated; /* messages of writes that arrived again */
};

struct tenrec_region {
    struct region_table *table;
    struct tenrec_tensor *memory; /* shared */
    struct tenrec_region_ref ref;
    size_t holders; /* of the program */
    size_t n_pins;
    struct region_pin *pins;
    bool revoked, own;
};

/* What a message asks for: parts of one region, each with a tensor of the message or its answer. */
enum { REGION_PARTS_MAX = DISPATCH_INTO_MAX };
struct region_use {
    uint64_t life, number, generation, key[2];
    size_t n;
    struct {
        uint64_t offset, bytes;
    } part[REGION_PARTS_MAX];
};

static inline struct region_table **region_table_of(const struct tenrec_worker *w)
{
    return w->service[SERVICE_REGION];
}

struct region_table *region_table_new(void);     /* NULL: out of memory */
void region_table_drop(struct region_table *t);  /* not locked */
void region_unlock_end(struct tenrec_region *r); /* unlocks; frees what is unused now */
tenrec_status region_random(void *to, size_t n, tenrec_error *err); /* errors: EOS */

/* Checks a use of the memory by `from`, and makes a tensor of the bytes of each part (uint8), each
 * with a pin, which ends when the tensor is dropped. It is in the host: for memory of a device the
 * bytes are those of a copy, which the caller begins.
 *
 * ret      use->n; none after an error
 * errors   ESTALE, ENOTFOUND, EPERM (key, right), EINVAL (bounds), ENOMEM */
tenrec_status region_pin(struct tenrec_worker *w, tenrec_peer from, const struct region_use *use,
                         uint32_t right, struct tenrec_tensor **ret, tenrec_error *err);
bool region_is_pin(const struct tenrec_tensor *t); /* made by region_pin; NULL is fine */

/* The copies of all parts, of one of the tensors. Returns NULL for memory of the host. */
struct region_bytes *region_pin_copies(const struct tenrec_tensor *t, size_t *ret_n);

/* region_writes.c: the latest messages of writes, each known by its connection and its id. A
 * message that arrives again may not write again: another write may have followed it. */
/* Notes a message. errors: ENOMEM */
tenrec_status region_writes_note(struct region_table *t, tenrec_peer from,
                                 const struct tenrec_msg *msg, bool *ret_repeated,
                                 tenrec_error *err);
bool region_writes_have(struct region_table *t, tenrec_peer from, const struct tenrec_msg *msg);

/* Waits until no pin is left. The caller holds the lock. errors: ETIMEDOUT */
tenrec_status region_wait_quiet(struct tenrec_region *r, uint64_t until, tenrec_error *err);

/* Checks that the elements of a tensor can be a region, or local bytes: in memory of the host, or
 * of a device of this process, and contiguous; writable, too. errors: EINVAL, EUNSUPPORTED */
tenrec_status region_check_tensor(const struct tenrec_tensor *t, bool writable, tenrec_error *err);

/* ---- region_transfer.c: messages ------------------------------------------------------------ */

/* A BULK_READ (bytes: NULL), or a BULK_WRITE with the bytes of each part, which are taken on
 * success. errors: ENOMEM */
tenrec_status region_message_new(int32_t type, const struct region_use *use,
                                 struct tenrec_tensor *const *bytes, struct tenrec_msg **ret,
                                 tenrec_error *err);

extern const struct dispatch_handler region_messages[];

#endif
