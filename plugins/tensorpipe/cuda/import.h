/* SPDX-License-Identifier: Apache-2.0 */
/* import.h - memory and events of other processes, opened once.
 *
 * To open a handle takes the driver a hundred microseconds, so what was opened
 * stays open: until the peer says that the allocation is another one, until there
 * are too many, or until no agent here uses devices any more. One table per
 * process, because a process may open a handle only once. */
#ifndef TENSORPIPE_CUDA_IMPORT_H
#define TENSORPIPE_CUDA_IMPORT_H

#include "cuda/device.h"

#define IMPORT_OWNER 16 /* bytes that name a process */

/* The memory as the peer names it: every field is untrusted. */
struct import_key {
    unsigned char owner[IMPORT_OWNER];
    uint64_t base;   /* its address there */
    uint64_t buffer; /* which life of that address */
    struct driver_ipc_memory handle;
};

struct import;

/* `len` bytes from `offset` of the allocation on, for device `index`. It stays open
 * until import_drop at least.
 *
 * errors   EOS, ENOMEM: it cannot be opened here; EPROTOCOL: it is smaller
 */
tenrec_status import_open(const struct import_key *key, int index, uint64_t offset, uint64_t len,
                          struct import **ret, driver_address *ret_at, tenrec_error *err);
void import_drop(struct import *i); /* NULL is fine */

/* Makes later work on `s` wait for the event that `owner` has recorded. */
tenrec_status import_wait(const struct tenrec_stream *s, const unsigned char owner[IMPORT_OWNER],
                          const struct driver_ipc_event *handle, tenrec_error *err);

/* Closes all unused imports of `owner` (NULL: of all owners). Call when a connection to
 * it ends: a later connection may reuse the handles for other memory. */
void imports_close(const unsigned char *owner);

/* export.c: memory of this process that others map.
 *
 * The driver makes a handle by a system call. An allocation has a number of its own for
 * the process's life, so its handle is made once, and kept beside that number. */

/* An allocation. */
struct export
{
    driver_address base;
    uint64_t len;    /* bytes */
    uint64_t buffer; /* its number; 0 of no allocation */
    struct driver_ipc_memory handle;
};

/* The allocation around `at`, a place in memory of device `index`, whose context is current.
 *
 * errors   EOS: the driver does not share it, such as that of cuMemAllocAsync
 */
tenrec_status export_find(int index, driver_address at, struct export *ret, tenrec_error *err);

#endif
