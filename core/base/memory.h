/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - allocation, one by one and in arenas. */
#ifndef TENREC_BASE_MEMORY_H
#define TENREC_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <tenrec/error.h>

/* n * size bytes zeroed like calloc; NULL when that overflows or fails. All
 * long-lived memory of the core is allocated here, so that a test can make the nth
 * allocation fail. */
void *memory_new(size_t n, size_t size);
void *memory_resize(void *old, size_t n, size_t size);

/* Makes room for one more element of `size` bytes behind the first `n`: returns `list` (NULL: an
 * empty one), or a copy with twice the *room. NULL when memory runs out; `list` stays then. */
void *memory_grow(void *list, size_t n, size_t *room, size_t size);

char *memory_text(const char *text);
char *memory_text_n(const char *text, size_t n);

/* Returns TENREC_ENOMEM, with a text. Inline, so that the static analyzer sees a failure. */
static inline tenrec_status memory_fail(tenrec_error *err)
{
    return tenrec_fail(err, TENREC_ENOMEM, "out of memory");
}

/* Free memory of malloc, returned to the system after a burst.
 *
 * malloc keeps freed pages between blocks in use. After a burst of messages these are
 * most of the process. */

#define HEAP_STEP ((size_t)1 << 20) /* bytes that a thread frees between two reports */
#define HEAP_IDLE_MS 1000           /* a burst is over after so long without a report */

/* Reports that the calling thread has freed another HEAP_STEP bytes of messages. */
void heap_freed(void);

/* A housekeeping job: returns free pages to the system unless a report was made since the
 * last run. Returns the time of the next run, CLOCK_NEVER once the pages are returned. */
uint64_t heap_trim(uint64_t now_ns);

/* Many small allocations that are freed together. */

/* Zeroed is empty. */
struct arena {
    struct arena_block *last;
    size_t bytes; /* of all allocations, and of what each takes beside them */
};

/* Zeroed, aligned for any type; NULL: out of memory, or n * size overflows. */
void *arena_new(struct arena *arena, size_t n, size_t size);
char *arena_text(struct arena *arena, const char *text);

/* Frees all; the arena is empty again. */
void arena_finish(struct arena *arena);

#endif
