/* SPDX-License-Identifier: Apache-2.0 */
/* secret.h - passwords in URLs, masked before a text is printed. A text is masked as a whole
 * and before it is cut: a password may hold blanks, quotes, commas, and be long. */
#ifndef TENREC_CONFIG_SECRET_H
#define TENREC_CONFIG_SECRET_H

#include <stdbool.h>
#include <tenrec/error.h>

/* Returns a copy of a URL, or of a text with URLs, with "***" for each possible password
 * ("redis://me:***@host"), also in a mistyped URL ("redis:me:pw@host", "redis://me:pw");
 * the caller frees the copy. NULL: out of memory. */
char *secret_mask(const char *text);

/* Returns true if secret_mask would change the text. */
bool secret_is_in(const char *text);

/* Puts "***" where `err` repeats the password of `url`. */
void secret_scrub(tenrec_error *err, const char *url);

#endif
