/* SPDX-License-Identifier: Apache-2.0 */
/* secret.h - what must not be printed: passwords in URLs. A text is masked as a whole and
 * before any of it is cut: a password may hold blanks, quotes, commas, and be long. */
#ifndef TENREC_YAML_SECRET_H
#define TENREC_YAML_SECRET_H

#include <stdbool.h>
#include <tenrec/error.h>

/* A copy of a URL, or of a text with URLs, in which what may be a password reads "***"
 * ("redis://me:***@host"), also where the URL is mistyped ("redis:me:pw@host",
 * "redis://me:pw"); the caller frees it. NULL: out of memory. */
char *secret_mask(const char *text);

/* Would secret_mask change it? */
bool secret_is_in(const char *text);

/* Puts "***" where `err` repeats the password of `url`, which the maker of the text did
 * not mask. */
void secret_scrub(tenrec_error *err, const char *url);

#endif
