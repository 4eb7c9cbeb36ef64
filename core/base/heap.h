/* SPDX-License-Identifier: Apache-2.0 */
/* heap.h - free memory of malloc, returned to the system after a burst.
 *
 * malloc keeps freed pages between blocks in use. After a burst of messages these are
 * most of the process. */
#ifndef TENREC_BASE_HEAP_H
#define TENREC_BASE_HEAP_H

#include <stddef.h>
#include <stdint.h>

#define HEAP_STEP ((size_t)1 << 20) /* bytes that a thread frees between two reports */
#define HEAP_IDLE_MS 1000           /* a burst is over after so long without a report */

/* Reports that the calling thread has freed another HEAP_STEP bytes of messages. */
void heap_freed(void);

/* A housekeeping job: returns free pages to the system unless a report was made since the
 * last run. Returns the time of the next run, CLOCK_NEVER once the pages are returned. */
uint64_t heap_trim(uint64_t now_ns);

#endif
