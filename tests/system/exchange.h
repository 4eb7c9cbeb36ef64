/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h - functions of the worker programs, and a round of
 * calls from each to all. */
#ifndef SYSTEM_EXCHANGE_H
#define SYSTEM_EXCHANGE_H

#include <tenrec/tenrec.h>

/* Registers add (inline), echo, scale (a tensor times two) and hold, which is
 * not answered before exchange_release. */
tenrec_status exchange_register(struct tenrec_worker *w, tenrec_error *err);

/* Calls every worker of the group, this one too, with ints, a text and a
 * tensor, all at once, `rounds` times; and checks what they answer.
 *
 * ret_calls  how many calls were answered
 */
tenrec_status exchange_all(struct tenrec_worker *w, int rounds, int *ret_calls, tenrec_error *err);

/* Has a worker double a tensor of so many numbers, and checks each. */
tenrec_status exchange_tensor(struct tenrec_worker *w, const char *to, int64_t count, int64_t ms,
                              tenrec_error *err);

/* How many calls hold keeps; and answers them, and returns how many they were. */
int exchange_held(void);
int exchange_release(void);

#endif
