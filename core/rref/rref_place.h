/* SPDX-License-Identifier: Apache-2.0 */
/* rref_place.h - where the program makes references. */
#ifndef TENREC_RREF_RREF_PLACE_H
#define TENREC_RREF_RREF_PLACE_H

#include <tenrec/rref.h>

/* Writes what tenrec_rref_made_at said last on this thread into `r`; and
 * forgets it. */
void rref_place(struct tenrec_rref *r);
void rref_place_forget(void);

#endif
