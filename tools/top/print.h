/* SPDX-License-Identifier: Apache-2.0 */
/* print.h - samples on stdout, as tables or JSON. */
#ifndef TENREC_TOOLS_TOP_PRINT_H
#define TENREC_TOOLS_TOP_PRINT_H

#include "tool.h"
#include "top/sampler.h"

struct print_options {
    const char *sort; /* key of a column */
    int samples;      /* 0: without end */
    bool as_json;
};

/* Prints each sample after one interval. Returns the exit status. */
int print_samples(const struct tool *self, struct sampler *s, const struct print_options *o);

#endif
