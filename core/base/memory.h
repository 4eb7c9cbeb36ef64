/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - small helpers around allocation. */
#ifndef TENREC_BASE_MEMORY_H
#define TENREC_BASE_MEMORY_H

#include <stddef.h>
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

#endif
