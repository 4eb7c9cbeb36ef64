/* SPDX-License-Identifier: Apache-2.0 */
/* The mathematics of the bigram example. */
#include "../testing.h"
#include "bigram_model.h"

#include <math.h>

static double counts[CELLS], parts[CELLS];
static float logits[CELLS], gradient[CELLS];
static struct adam adam;

static unsigned char abac[] = { 1, 2, 1, 3, 1, 2, 2, 127, 0, 1, 3 };

static void clear(void)
{
    memset(counts, 0, sizeof counts);
    memset(parts, 0, sizeof parts);
    memset(logits, 0, sizeof logits);
    memset(&adam, 0, sizeof adam);
}

static struct text sample(void)
{
    return (struct text){ abac, sizeof abac };
}

TEST_WITH(bigram_parts_make_the_whole_for_any_number_of_parts, clear, NULL)
{
    const struct text t = sample();

    assert_int_equal(text_count(&t, 0, 1, counts), sizeof abac - 1);
    for (size_t n = 1; n < 14; n++) {
        size_t pairs = 0;

        memset(parts, 0, sizeof parts);
        for (size_t i = 0; i < n; i++)
            pairs += text_count(&t, i, n, parts);
        assert_int_equal(pairs, sizeof abac - 1);
        assert_memory_equal(parts, counts, sizeof counts);
    }
}

TEST_WITH(bigram_loss_is_that_of_128_equal_characters_when_logits_are_zero, clear, NULL)
{
    const struct text t = sample();
    double pairs = (double)text_count(&t, 0, 1, counts);

    assert_true(fabs(bigram_loss(counts, logits, NULL) / pairs - log(128)) < 1e-12);
}

TEST_WITH(bigram_gradient_is_the_slope_of_the_loss, clear, NULL)
{
    const struct text t = sample();
    const float h = 1.0F / 1024;

    text_count(&t, 0, 1, counts);
    for (size_t i = 0; i < CELLS; i++)
        logits[i] = (float)(i * 7919 % 64) / 16 - 2;
    bigram_loss(counts, logits, gradient);
    for (size_t i = 0; i < 4 * (size_t)SYMBOLS; i += 3) {
        const float here = logits[i];
        double slope;

        logits[i] = here + h;
        slope = bigram_loss(counts, logits, NULL);
        logits[i] = here - h;
        slope = (slope - bigram_loss(counts, logits, NULL)) / (2 * (double)h);
        logits[i] = here;
        assert_true(fabs(slope - (double)gradient[i]) < 1e-4);
    }
}

TEST_WITH(bigram_optimum_is_one_when_each_character_has_one_successor, clear, NULL)
{
    unsigned char abab[] = { 1, 2, 1, 2, 1 };
    const struct text t = { abab, sizeof abab };

    text_count(&t, 0, 1, counts);
    assert_true(fabs(bigram_optimum(counts) - 1) < 1e-12);
}

TEST_WITH(bigram_optimum_is_two_when_two_successors_are_as_likely, clear, NULL)
{
    counts[5] = counts[6] = 10;
    assert_true(fabs(bigram_optimum(counts) - 2) < 1e-12);
}

TEST_WITH(bigram_training_comes_close_to_the_optimum, clear, NULL)
{
    static double slope[CELLS];
    const struct text t = sample();
    double pairs = (double)text_count(&t, 0, 1, counts), perplexity;

    for (int step = 0; step < 200; step++) {
        bigram_loss(counts, logits, gradient);
        for (size_t i = 0; i < CELLS; i++)
            slope[i] = (double)gradient[i] / pairs;
        adam_step(&adam, 200, slope, logits);
    }
    perplexity = exp(bigram_loss(counts, logits, NULL) / pairs);
    assert_true(perplexity >= bigram_optimum(counts));
    assert_true(perplexity < bigram_optimum(counts) * 1.001);
}
