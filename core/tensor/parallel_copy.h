/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_copy.h - copies of large memory by two threads.
 *
 * One processor copies uncached data at about half the memory's bandwidth. The second
 * thread is started by the first large copy and sleeps between copies. */
#ifndef TENREC_TENSOR_PARALLEL_COPY_H
#define TENREC_TENSOR_PARALLEL_COPY_H

#include <stddef.h>
#include <tenrec/error.h>

struct parallel_copy;

/* Starts no thread yet. errors: ENOMEM */
tenrec_status parallel_copy_open(struct parallel_copy **ret, tenrec_error *err);

/* Ends the second thread; no copy may be running. NULL is fine. */
void parallel_copy_close(struct parallel_copy *c);

/* memcpy, from any thread. Copies alone if the memory is small, with one processor,
 * without a second thread, and while that helps another caller. Waits for the second
 * thread at most for a piece of 64 KiB. */
void parallel_copy_run(struct parallel_copy *c, void *to, const void *from, size_t bytes);

#endif
