/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - bytes in JSON. */
#ifndef STORE_BASE64_H
#define STORE_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Of both pieces together. Returns NULL without memory; free it. */
char *base64_encode(const char *head, const void *data, size_t len);
/* Returns NULL, with *ret_len 0 when `text` is malformed and 1 when memory is exhausted. The bytes
 * have a NUL behind them; free them. */
char *base64_decode(const char *text, size_t *ret_len);

#endif
