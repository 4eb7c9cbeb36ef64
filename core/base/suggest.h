/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.h - "did you mean": the known name nearest to a word nobody knows.
 *
 *     struct nearest near;
 *     nearest_init(&near, "dealy");
 *     for (each known name)
 *         nearest_try(&near, name);
 *     tenrec_fail(err, TENREC_ECONFIG, "has no option '%s'%s", word, nearest_hint(&near));
 */
#ifndef TENREC_BASE_SUGGEST_H
#define TENREC_BASE_SUGGEST_H

#include <stddef.h>

#define NEAREST_MAX 63 /* bytes of the longest word that is compared */

struct nearest {
    const char *word; /* borrowed until the last try */
    size_t distance;  /* of `best`; the largest that still counts, plus one, at first */
    char best[NEAREST_MAX + 1];
    char hint[NEAREST_MAX + 24];
};

void nearest_init(struct nearest *near, const char *word);

/* The first of several equally near names wins. */
void nearest_try(struct nearest *near, const char *name);
void nearest_try_n(struct nearest *near, const char *name, size_t len);

/* Tries each name of "a|b|c". */
void nearest_try_choices(struct nearest *near, const char *choices);

/* The nearest name, or NULL when none is near enough to be meant. Owned by
 * `near`. */
const char *nearest_name(const struct nearest *near);

/* " (did you mean 'delay'?)" or "". Owned by `near`. */
const char *nearest_hint(struct nearest *near);

/* Letters to insert, remove, replace or swap with their neighbour to make `b`
 * of `a`, without regard to case; NEAREST_MAX + 1 for words that are too long. */
size_t nearest_distance(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
