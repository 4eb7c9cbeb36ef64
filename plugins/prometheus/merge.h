/* SPDX-License-Identifier: Apache-2.0 */
/* merge.h - joins the texts of several processes: the format wants all lines of a metric together.
 */
#ifndef PROMETHEUS_MERGE_H
#define PROMETHEUS_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct merge_text {
    char *data; /* owns */
    size_t len;
};

/* Writes the metrics of `n` texts, each of which begins a metric by "# HELP NAME ". A text that
 * begins otherwise is left out. Returns the number of those, or -1 without memory. */
int merge_texts(const struct merge_text *text, size_t n, FILE *to);

#endif
