/* SPDX-License-Identifier: Apache-2.0 */
/* password.h - a password in a file of its own. */
#ifndef REDIS_PASSWORD_H
#define REDIS_PASSWORD_H

#include <stddef.h>
#include <tenrec/error.h>

/* Reads the first line of a file that only its owner, we or root, can read; with its NUL it has at
 * most `room` bytes.
 * errors: ECONFIG with the path and the remedy, never with the text of the file */
tenrec_status password_read(const char *path, char *ret, size_t room, tenrec_error *err);

#endif
