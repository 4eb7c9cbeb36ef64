/* SPDX-License-Identifier: Apache-2.0 */
/* loan.h - memory of devices that agents of one process lend each other.
 *
 * What travels is a number, never an address: a peer that names what was not lent,
 * or was taken already, gets nothing. Of the process; of any thread. */
#ifndef TENSORPIPE_CUDA_LOAN_H
#define TENSORPIPE_CUDA_LOAN_H

#include "cuda/device.h"

struct loan;

/* `bytes` at `data`, which are there after `event`. Both belong to the lender until
 * the loan is back. NULL: out of memory. */
struct loan *loan_offer(const void *data, uint64_t bytes, struct device_event *event);
uint64_t loan_number(const struct loan *l);
/* Nobody has it, or not any more: then it is freed. */
bool loan_end(struct loan *l, bool withdraw);

/* The borrower's side. NULL: there is no such loan of that length. */
struct loan *loan_take(uint64_t number, uint64_t bytes);
const void *loan_data(const struct loan *l);
struct device_event *loan_event(const struct loan *l);
void loan_return(struct loan *l);

#endif
