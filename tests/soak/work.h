/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - what the workers of a soak have each other do, and what they check. */
#ifndef SOAK_WORK_H
#define SOAK_WORK_H

#include <tenrec/tenrec.h>

/* Registers the functions. */
tenrec_status work_register(struct tenrec_worker *w, tenrec_error *err);
tenrec_status leases_register(struct tenrec_worker *w, tenrec_error *err);

/* What a thread does again and again. */
struct caller_job;
extern const struct caller_job calls_job;    /* calls of all kinds to members that it draws */
extern const struct caller_job offers_job;   /* makes and revokes regions */
extern const struct caller_job versions_job; /* publishes and pulls weights */

/* A thread with a job; some tensors have `large` numbers, if it is not 0. */
struct caller;
struct caller *caller_start(struct tenrec_worker *w, const struct caller_job *job, uint64_t seed,
                            int64_t large);
/* Makes no calls until the next order; waits until the last one has ended. */
void caller_pause(struct caller *c);
void caller_resume(struct caller *c);
void caller_stop(struct caller *c);

/* The group has removed this worker: its calls fail with EGROUP. */
bool work_was_removed(void);

/* Gathers `value` with the named ones and checks what comes. */
tenrec_status work_gather(struct tenrec_worker *w, const char *const *names, size_t n,
                          int64_t value, int64_t ms, tenrec_error *err);

#endif
