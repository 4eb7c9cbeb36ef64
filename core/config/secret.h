/* secret.h - what must not be printed. */
#ifndef TENREC_CONFIG_SECRET_H
#define TENREC_CONFIG_SECRET_H

#include <tenrec/error.h>

/* A copy in which the password of every URL reads "***"
 * ("tcp://me:***@host"); the caller frees it. NULL: out of memory. */
char *secret_mask(const char *text);

/* The same within an error text. */
void secret_mask_error(tenrec_error *err);

#endif
