/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_copy.h - copies of large memory, in which a second thread helps.
 *
 * One processor copies what its caches do not hold at about half of what the memory
 * can do. The second thread begins with the first copy that is worth it and
 * sleeps between copies. */
#ifndef TENREC_SHM_PARALLEL_COPY_H
#define TENREC_SHM_PARALLEL_COPY_H

#include <stddef.h>
#include <tenrec/error.h>

struct parallel_copy;

/* Starts no thread yet. errors: ENOMEM */
tenrec_status parallel_copy_open(struct parallel_copy **ret, tenrec_error *err);

/* Ends its thread; nobody may copy any more. NULL is fine. */
void parallel_copy_close(struct parallel_copy *c);

/* memcpy, from any thread. Alone where the memory is small, where there is one
 * processor, where no thread can be had, and while it helps somebody else.
 * Waits for the other only as long as that copies a piece of 64 KiB. */
void parallel_copy_run(struct parallel_copy *c, void *to, const void *from, size_t bytes);

#endif
