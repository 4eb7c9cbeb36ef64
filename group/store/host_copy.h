/* SPDX-License-Identifier: Apache-2.0 */
/* host_copy.h - what one worker of a host has read of the store, kept for the others that the same
 * launcher has started: a large value crosses the network once for each host.
 *
 * It lies in a memory file that the workers inherit (TENREC_HOST_FD). A worker that is locked out
 * for too long, or has no such file, reads the store. */
#ifndef TENREC_STORE_HOST_COPY_H
#define TENREC_STORE_HOST_COPY_H

#include "group/store/store.h"

#define HOST_COPY_VARIABLE "TENREC_HOST_FD"

/* Smaller groups read the store: to wait for a lock costs more than a value of 10 KiB. */
enum { HOST_COPY_FROM = 48 /* workers */ };

struct host_copy {
    /* Reads the value from the store. *ret may stay without data. */
    tenrec_status (*fetch)(void *arg, uint64_t deadline_ns, struct store_value *ret,
                           tenrec_error *err);
    /* Returns true if the copy can serve as that value: it may be older, malformed, or another. A
     * hostile process of the launcher may change it at any time, so what is read of it twice may
     * differ. */
    bool (*fits)(void *arg, const struct store_value *copy);
    void *arg;
};

/* Of the store, or mapped: then others are kept from replacing the copy until the drop. */
struct host_value {
    struct store_value value;
    void *mapped; /* NULL: of the store */
    int fd;
};

/* Zeroed is dropped. */
void host_value_drop(struct host_value *v);

/* ret: host_value_drop, also after a failure. errors: those of `fetch` */
tenrec_status host_copy_read(const struct host_copy *h, uint64_t deadline_ns,
                             struct host_value *ret, tenrec_error *err);

/* Makes the file for workers to be started; not closed by exec. errors: EOS */
tenrec_status host_copy_new(int *ret_fd, tenrec_error *err);

#endif
