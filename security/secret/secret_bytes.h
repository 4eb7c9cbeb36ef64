/* SPDX-License-Identifier: Apache-2.0 */
/* secret_bytes.h - the bytes of a secret, for the files of this room that write them to another
 * place or derive keys of them. */
#ifndef TENREC_SECRET_SECRET_BYTES_H
#define TENREC_SECRET_SECRET_BYTES_H

#include "security/secret/secret.h"

/* Borrowed until the secret is dropped. */
const void *secret_bytes(const struct secret *s, size_t *ret_len);

#endif
