/* SPDX-License-Identifier: Apache-2.0 */
/* profiler_sessions.h - three workers, and sessions of the profiler on them. */
#ifndef TENREC_TEST_PROFILER_SESSIONS_H
#define TENREC_TEST_PROFILER_SESSIONS_H

#include "../support/cluster.h"
#include <tenrec/profiler.h>

extern struct cluster three;

void open_three(void);
void close_three(void);

struct tenrec_profiler *start(size_t rank, enum tenrec_profiler_scope scope, uint32_t flags);
void stop(struct tenrec_profiler *p);
void call(size_t from, const char *to, const char *fn, const struct tenrec_value *args, size_t n);

/* The event of exactly this name, which there must be once. */
const struct tenrec_event *one(const struct tenrec_profiler *p, const char *name);
bool within(const struct tenrec_event *inner, const struct tenrec_event *outer);

#endif
