/* SPDX-License-Identifier: Apache-2.0 */
/* rref_place.h - source lines that make references. Per thread, no locks. */
#ifndef TENREC_RREF_RREF_PLACE_H
#define TENREC_RREF_RREF_PLACE_H

#include <tenrec/rref.h>

/* Moves the origin that tenrec_rref_set_origin noted on this thread into `r`. */
void rref_place(struct tenrec_rref *r);
void rref_place_forget(void);

/* tenrec_remote. With `deref` the first argument, a reference, stands for its value at the callee.
 */
tenrec_status rref_remote(struct tenrec_worker *w, const char *to, const char *function,
                          const struct tenrec_value *args, size_t n, bool deref,
                          const struct tenrec_call_options *options, struct tenrec_rref **ret,
                          tenrec_error *err);

#endif
