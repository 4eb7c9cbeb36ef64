/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - is a text what it claims to be? */
#ifndef TENREC_RPC_UTF8_H
#define TENREC_RPC_UTF8_H

#include <stddef.h>

/* How many bytes from the start on are well-formed UTF-8 (RFC 3629: shortest
 * form, no surrogates, at most U+10FFFF); `n` when all are. */
size_t utf8_span(const void *text, size_t n);

/* Copies at most room - 1 bytes of `text`, cut at a whole character, with what
 * is no UTF-8 and control characters other than tab and newline replaced by
 * '?', and ends with a NUL. Returns the length. */
size_t utf8_clean(const void *text, size_t n, char *to, size_t room);

#endif
