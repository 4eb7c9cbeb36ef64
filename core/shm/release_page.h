/* SPDX-License-Identifier: Apache-2.0 */
/* release_page.h - what a receiver of shared memory has let go of.
 *
 * The owner of memory lends parts of it to another process; each loan is a slot
 * in a page that both have mapped. The holder of a loan can do one thing with
 * it: mark it as ended. That costs no message and no system call, and works
 * after their connection broke. What a loan is of only the owner's own memory
 * says, so a page with nonsense in it ends loans too early, of that holder, and
 * does nothing else.
 *
 * A pipe goes with the page: the holder has its only writing end, so the owner
 * hears of the holder's death from the kernel, whatever kills it. */
#ifndef TENREC_SHM_RELEASE_PAGE_H
#define TENREC_SHM_RELEASE_PAGE_H

#include "shm/memfd_region.h"

#include <stdint.h>

#define RELEASE_PAGE_SLOTS 1024
#define RELEASE_PAGE_WORDS (RELEASE_PAGE_SLOTS / 64)
#define RELEASE_PAGE_FDS 2

struct release_page {
    struct memfd_region page;
    int line; /* the pipe's end: the owner's reads, the holder's writes */
};

/* The owner's end, and in `fds` what the holder needs, which the caller owns.
 * errors: EOS, ENOMEM */
tenrec_status release_page_make(struct release_page *ret, int fds[RELEASE_PAGE_FDS],
                                tenrec_error *err);

/* The holder's end of what came in `fds`: takes them on success only. errors:
 * EPROTOCOL, ENOMEM, EOS */
tenrec_status release_page_take(const int fds[RELEASE_PAGE_FDS], struct release_page *ret,
                                tenrec_error *err);

/* The holder: this loan has arrived; it has ended, all that was read is read. */
void release_page_hold(const struct release_page *l, unsigned slot);
void release_page_end(const struct release_page *l, unsigned slot);

/* The holder: the connection is gone. What did not arrive yet never will. */
void release_page_leave(const struct release_page *l);

/* The owner: which of the loans 64 * word ... have ended since it was asked
 * last, as bits. Cheap when there are none. */
uint64_t release_page_ended(const struct release_page *l, unsigned word);

/* The owner, when it lends nothing more: which loans 64 * word ... the holder
 * still has, or may get. */
uint64_t release_page_held(const struct release_page *l, unsigned word);

/* The owner: has the holder, and whoever else had its end, died or closed? */
bool release_page_holder_is_gone(const struct release_page *l);

void release_page_close(struct release_page *l); /* zeroed or closed is fine */

#endif
