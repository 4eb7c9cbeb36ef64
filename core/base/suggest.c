/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.c - edit distance (optimal string alignment) over short words. */
#include "core/base/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Independent of the locale. */
static char suggest_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t suggest_least(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;

    return m < c ? m : c;
}

size_t suggest_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t row[3][SUGGEST_WORD_MAX + 1]; /* the last two rows and the current one */

    if (a_len > SUGGEST_WORD_MAX || b_len > SUGGEST_WORD_MAX)
        return SUGGEST_WORD_MAX + 1;
    for (size_t j = 0; j <= b_len; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *cur = row[i % 3], *up = row[(i + 2) % 3], *upup = row[(i + 1) % 3];
        cur[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            char x = suggest_lower(a[i - 1]), y = suggest_lower(b[j - 1]);
            cur[j] = suggest_least(up[j] + 1, cur[j - 1] + 1, up[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == suggest_lower(b[j - 2]) && suggest_lower(a[i - 2]) == y)
                cur[j] = suggest_least(cur[j], upup[j - 2] + 1, cur[j]);
        }
    }
    return row[a_len % 3][b_len];
}

/* Returns true if the words are the same but for their digits: "worker1" and "worker12". */
static bool suggest_numbered_alike(const char *a, const char *b, size_t b_len)
{
    static const char digits[] = "0123456789";
    const char *end = b + b_len;

    if (!strpbrk(a, digits) || strcspn(b, digits) >= b_len)
        return false;
    for (;; a++, b++) {
        a += strspn(a, digits);
        while (b < end && *b >= '0' && *b <= '9')
            b++;
        if (!*a || b == end)
            return !*a && b == end;
        if (*a != *b)
            return false;
    }
}

void suggest_init(struct suggestion *near, const char *word)
{
    near->word = word;
    near->distance = (strlen(word) + 3) / 4 + 1;
    near->best[0] = near->names[0] = near->hint[0] = '\0';
}

/* Adds a name whole, or the mark that some are missing. */
static void suggest_note(struct suggestion *near, const char *name, size_t len)
{
    const char more[] = " ...";
    const size_t used = strlen(near->names);
    const char *join = used ? ", " : "";

    if (used >= strlen(more) && strcmp(near->names + used - strlen(more), more) == 0)
        return;
    if (used + strlen(join) + len + sizeof more > sizeof near->names)
        memcpy(near->names + used, more, sizeof more);
    else
        snprintf(near->names + used, sizeof near->names - used, "%s%.*s", join, (int)len, name);
}

void suggest_try_n(struct suggestion *near, const char *name, size_t len)
{
    size_t word_len = strlen(near->word);
    size_t d = suggest_distance(near->word, word_len, name, len);

    suggest_note(near, name, len);

    /* A name that keeps no letter of the word is no suggestion; another number is no misspelling.
     */
    if (d >= near->distance || d > SUGGEST_WORD_MAX || d >= (len > word_len ? len : word_len) ||
        suggest_numbered_alike(near->word, name, len))
        return;
    near->distance = d;
    memcpy(near->best, name, len);
    near->best[len] = '\0';
}

void suggest_try(struct suggestion *near, const char *name)
{
    suggest_try_n(near, name, strlen(name));
}

void suggest_try_choices(struct suggestion *near, const char *choices)
{
    while (choices && *choices) {
        size_t len = strcspn(choices, "|");
        suggest_try_n(near, choices, len);
        choices += len + (choices[len] == '|');
    }
}

const char *suggest_name(const struct suggestion *near)
{
    return near->best[0] ? near->best : NULL;
}

const char *suggest_guess(struct suggestion *near)
{
    if (near->best[0])
        snprintf(near->hint, sizeof near->hint, " (did you mean '%s'?)", near->best);
    return near->hint;
}

const char *suggest_hint(struct suggestion *near)
{
    if (!near->best[0] && near->names[0])
        snprintf(near->hint, sizeof near->hint, " (known: %s)", near->names);
    return suggest_guess(near);
}
