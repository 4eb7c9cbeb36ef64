/* nearest.h - the known word that a misspelt one was probably meant to be. */
#ifndef TENREC_BASE_NEAREST_H
#define TENREC_BASE_NEAREST_H

#include <stddef.h>

/* Keeps the best of the words it is shown. */
struct nearest {
    const char *word; /* the misspelt one, borrowed */
    char best[64];    /* "" while nothing is near enough */
    size_t distance;
};

void nearest_init(struct nearest *n, const char *word);
void nearest_try(struct nearest *n, const char *candidate);

#endif
