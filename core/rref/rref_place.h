/* SPDX-License-Identifier: Apache-2.0 */
/* rref_place.h - source lines that make references. Per thread, no locks. */
#ifndef TENREC_RREF_RREF_PLACE_H
#define TENREC_RREF_RREF_PLACE_H

#include <tenrec/rref.h>

/* Copies the thread's last tenrec_rref_made_at into `r`. */
void rref_place(struct tenrec_rref *r);
void rref_place_forget(void);

#endif
