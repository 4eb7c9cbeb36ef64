/* SPDX-License-Identifier: Apache-2.0 */
/* release_page.h - the page in which a receiver of shared memory marks ended loans.
 *
 * The owner of memory lends parts of it to another process; each loan is a slot in a page
 * that both have mapped. The holder of a loan can only mark it as ended. That costs no
 * message and no system call, and works after the connection broke. The memory of a loan
 * is recorded in the owner's private memory alone, so a corrupt page can end loans of that
 * holder too early, and no more.
 *
 * A pipe belongs to the page: the holder has its only writing end, so the kernel reports
 * the holder's death to the owner. */
#ifndef TENREC_TENSOR_RELEASE_PAGE_H
#define TENREC_TENSOR_RELEASE_PAGE_H

#include "core/tensor/memfd_region.h"

#include <stdint.h>

#define RELEASE_PAGE_SLOTS 1024
#define RELEASE_PAGE_WORDS (RELEASE_PAGE_SLOTS / 64)
#define RELEASE_PAGE_FDS 2

struct release_page {
    struct memfd_region page;
    int line; /* an end of the pipe: the owner's for reading, the holder's for writing */
};

/* Makes the owner's end, and in `fds` the descriptors for the holder, owned by the caller.
 * errors: EOS, ENOMEM */
tenrec_status release_page_make(struct release_page *ret, int fds[RELEASE_PAGE_FDS],
                                tenrec_error *err);

/* Makes the holder's end from the received `fds`, taken on success only. errors: EPROTOCOL,
 * ENOMEM, EOS */
tenrec_status release_page_take(const int fds[RELEASE_PAGE_FDS], struct release_page *ret,
                                tenrec_error *err);

/* For the holder: mark a loan as arrived, and as ended after the last read. */
void release_page_hold(const struct release_page *l, unsigned slot);
void release_page_end(const struct release_page *l, unsigned slot);

/* For the holder: the connection is closed, and no further loan arrives. */
void release_page_leave(const struct release_page *l);

/* For the owner: the loans 64 * word ... that have ended since the last call, as bits.
 * Cheap when no loan has ended. */
uint64_t release_page_ended(const struct release_page *l, unsigned word);

/* For an owner that lends no more: the loans 64 * word ... that the holder has or may
 * still get. */
uint64_t release_page_held(const struct release_page *l, unsigned word);

/* For the owner: returns true if all processes with the holder's end have closed it. */
bool release_page_holder_is_gone(const struct release_page *l);

void release_page_close(struct release_page *l); /* zeroed or closed is fine */

#endif
