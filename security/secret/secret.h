/* SPDX-License-Identifier: Apache-2.0 */
/* secret.h - the group secret: random bytes that the members of a group have, and no other process.
 *
 * The bytes lie in locked pages of their own that no core dump contains, and are wiped before the
 * memory is freed. They are never logged, printed or passed in an argument or a variable. */
#ifndef TENREC_SECRET_SECRET_H
#define TENREC_SECRET_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <tenrec/error.h>

#define SECRET_BYTES 32 /* of a random secret */
#define SECRET_MIN 16   /* bytes of a secret in a file, at least */
#define SECRET_MAX 4096

struct secret; /* counted, immutable; shared by threads */

/* Copies `len` bytes; the caller wipes its own. errors: EINVAL (length), ENOMEM */
tenrec_status secret_new(const void *bytes, size_t len, struct secret **ret, tenrec_error *err);
/* Draws SECRET_BYTES random bytes. errors: EOS, ENOMEM */
tenrec_status secret_draw(struct secret **ret, tenrec_error *err);
struct secret *secret_share(struct secret *s);
void secret_drop(struct secret *s); /* NULL is fine */
/* Compares the bytes, in a time that depends on their number alone. */
bool secret_equal(const struct secret *a, const struct secret *b);

/* Derives `len` (at most 64) bytes for one use: HKDF-SHA256 with `purpose` as its info, such as
 * "tenrec proof 1" or "tenrec tls psk 1". The caller wipes them. errors: EOS */
tenrec_status secret_derive(const struct secret *s, const char *purpose, void *ret, size_t len,
                            tenrec_error *err);

/* Reads the secret of a regular file, as `tenrec secret new` writes it: 64 hexadecimal digits and a
 * newline; a file of another form is taken byte for byte.
 * errors: ECONFIG (missing; not ours or root's; readable by others: "chmod 600"; too short or too
 * long), each with the path and the remedy; ENOMEM */
tenrec_status secret_read_file(const char *path, struct secret **ret, tenrec_error *err);
/* Writes it to a new file of mode 0600. errors: EEXIST, EOS */
tenrec_status secret_write_file(const struct secret *s, const char *path, tenrec_error *err);

/* The bytes of a secret, for the files of this room that write them to another
 * place or derive keys of them. */

/* Borrowed until the secret is dropped. */
const void *secret_bytes(const struct secret *s, size_t *ret_len);

/* Whether the kernel's number of a user is ours. */

/* Returns true if `user`, as the kernel names the owner of a socket or of its peer, is the user of
 * this process and no other. */
bool own_user_is(uid_t user);

#endif
