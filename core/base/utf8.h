/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - checks and cleans UTF-8. */
#ifndef TENREC_BASE_UTF8_H
#define TENREC_BASE_UTF8_H

#include <stddef.h>

/* Returns the length of the well-formed prefix (RFC 3629: shortest form, no
 * surrogates, at most U+10FFFF); `n` if the whole text is UTF-8. */
size_t utf8_span(const void *text, size_t n);

/* Copies at most room - 1 bytes of `text`, cut at a whole character, and adds a NUL.
 * Malformed bytes, and control characters other than tab and newline, become '?'.
 * Returns the length. */
size_t utf8_clean(const void *text, size_t n, char *to, size_t room);

#endif
