/* SPDX-License-Identifier: Apache-2.0 */
/* draw.h - random names, by which a server tells stores and their clients apart. */
#ifndef STORE_DRAW_H
#define STORE_DRAW_H

#include <tenrec/error.h>

/* Sixteen hexadecimal digits.
 * errors: EOS */
tenrec_status store_draw(char ret[17], tenrec_error *err);

#endif
