#include "base/nearest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;

    return m < c ? m : c;
}

/* Levenshtein's distance; words longer than a row count as far away. */
static size_t distance(const char *a, const char *b)
{
    size_t row[sizeof((struct nearest *)0)->best];
    const size_t la = strlen(a), lb = strlen(b);

    if (la >= sizeof row / sizeof row[0] || lb >= sizeof row / sizeof row[0])
        return SIZE_MAX;
    for (size_t j = 0; j <= lb; j++)
        row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t above = row[j];
            row[j] = min3(row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[lb];
}

void nearest_init(struct nearest *n, const char *word)
{
    n->word = word;
    n->best[0] = '\0';
    /* More than a third of the letters wrong is no misspelling. */
    n->distance = strlen(word) / 3 + 2;
}

void nearest_try(struct nearest *n, const char *candidate)
{
    size_t d = distance(n->word, candidate);

    if (d >= n->distance)
        return;
    n->distance = d;
    snprintf(n->best, sizeof n->best, "%s", candidate);
}
