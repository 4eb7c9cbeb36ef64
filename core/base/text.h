/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - words that are nearly right, and UTF-8. */
#ifndef TENREC_BASE_TEXT_H
#define TENREC_BASE_TEXT_H

#include <stddef.h>

/* "Did you mean": the known name nearest to an unknown word.
 *
 *     struct suggestion near;
 *     suggest_init(&near, "dealy");
 *     for (each known name)
 *         suggest_try(&near, name);
 *     tenrec_fail(err, TENREC_ECONFIG, "has no option '%s'%s", word, suggest_hint(&near));
 *
 * A name is near if a typing error may have made the word of it: one letter in four, or two
 * swapped. Without a near name the hint lists the names.
 */

#define SUGGEST_WORD_MAX 63 /* bytes of the longest word that is compared */

struct suggestion {
    const char *word; /* borrowed until the last try */
    size_t distance;  /* of `best`; the largest that still counts, plus one, at first */
    char best[SUGGEST_WORD_MAX + 1];
    char names[160]; /* all that were tried, as many as fit */
    char hint[192];
};

void suggest_init(struct suggestion *near, const char *word);

/* The first of several equally near names wins. */
void suggest_try(struct suggestion *near, const char *name);
void suggest_try_n(struct suggestion *near, const char *name, size_t len);

/* Tries each name of "a|b|c". */
void suggest_try_choices(struct suggestion *near, const char *choices);

/* The nearest name, or NULL when no name is near enough. Owned by `near`. */
const char *suggest_name(const struct suggestion *near);

/* " (did you mean 'delay'?)" or "". Owned by `near`. */
const char *suggest_guess(struct suggestion *near);

/* The same, or " (known: delay, drop)", or "" if no name was tried. Owned by `near`. */
const char *suggest_hint(struct suggestion *near);

/* Letters to insert, remove, replace or swap with their neighbour to make `b`
 * of `a`, without regard to case; SUGGEST_WORD_MAX + 1 for words that are too long. */
size_t suggest_distance(const char *a, size_t a_len, const char *b, size_t b_len);

/* Checks and cleans UTF-8. */

/* Returns the length of the well-formed prefix (RFC 3629: shortest form, no
 * surrogates, at most U+10FFFF); `n` if the whole text is UTF-8. */
size_t utf8_span(const void *text, size_t n);

/* Copies at most room - 1 bytes of `text`, cut at a whole character, and adds a NUL.
 * Malformed bytes, and control characters other than tab and newline, become '?'.
 * Returns the length. */
size_t utf8_clean(const void *text, size_t n, char *to, size_t room);

#endif
