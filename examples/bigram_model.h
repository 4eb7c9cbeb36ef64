/* SPDX-License-Identifier: Apache-2.0 */
/* bigram_model.h - the mathematics of examples/bigram.c; independent of Tenrec.
 *
 * A bigram model gives the probability of each character after another. Here the
 * model is a softmax regression: one row of 128 logits per character, and
 *
 *     p(b after a) = exp(logit[a][b]) / sum over c of exp(logit[a][c])
 *
 * Its loss over a text is the mean of -log p over all pairs of neighbours, its
 * perplexity exp(loss). Characters are bytes; all bytes above 126 (the parts of
 * UTF-8 and Latin-1 letters) count as 127. */
#ifndef BIGRAM_MODEL_H
#define BIGRAM_MODEL_H

#include <stddef.h>

#define SYMBOLS 128
#define CELLS ((size_t)SYMBOLS * SYMBOLS)

struct text {
    unsigned char *symbols; /* 0..127 */
    size_t n;
};

/* Reads the files as one long text; without files those in
 * /usr/share/common-licenses that are not links (GPL is a link to GPL-3). Returns
 * 0, or -1 after a line on stderr. */
int text_read(struct text *t, char *const *files, size_t n_files);
void text_free(struct text *t);

/* Adds the pairs of part `i` of `n` to count[a * SYMBOLS + b] and returns their
 * number. Every pair is in exactly one part. */
size_t text_count(const struct text *t, size_t i, size_t n, double count[CELLS]);

/* exp(loss) of the best possible model: p(b after a) = count / row. */
double bigram_optimum(const double count[CELLS]);

/* The sum of -log p over all counted pairs, and its gradient by each logit:
 * row * p - count. Both are sums, so those of parts can be added. `gradient`
 * may be NULL. */
double bigram_loss(const double count[CELLS], const float logits[CELLS], float gradient[CELLS]);

/* Adam (Kingma and Ba, 2014) gives all logits steps of about the same length, however
 * rare their pairs are. Logits of pairs that never occur, whose optimum is minus
 * infinity and whose gradients are tiny, fall as fast as others settle; plain
 * gradient steps would need hours. */
struct adam {
    double mean[CELLS];
    double square[CELLS];
    int step;
};

/* Makes one of `steps` steps; their length decreases to zero. */
void adam_step(struct adam *a, int steps, const double gradient[CELLS], float logits[CELLS]);

#endif
