/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.h - reads a group again and again, from outside: its members in the store, then each
 * worker by calls that end at a deadline. One thread at a time. */
#ifndef TENREC_TOOLS_TOP_SAMPLER_H
#define TENREC_TOOLS_TOP_SAMPLER_H

#include "outside.h"
#include "top/sample.h"

struct sampler {
    struct outside outside; /* the options; its worker is replaced when the members change */
    uint64_t interval_ms;
    bool store_away;    /* in the sample that is being taken */
    struct sample last; /* owns its list without readings: names, states and times */
};

/* Attaches for the first time. Call sampler_finish also after a failure. */
tenrec_status sampler_start(struct sampler *s, tenrec_error *err);

/* Takes one sample, which is finished within the interval. A store that is away is an error in the
 * sample. Returns ENOMEM only. */
tenrec_status sampler_take(struct sampler *s, struct sample *ret, tenrec_error *err);

void sampler_finish(struct sampler *s);

/* A sample and its rates as one JSON object (docs/observe.md). */

/* Prints one line on stdout. `before` may be NULL. Returns false without memory, or if stdout
 * fails. */
bool sample_json_print(const struct sample *before, const struct sample *now);

#endif
