/* SPDX-License-Identifier: Apache-2.0 */
#include "bigram_model.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FOLDER "/usr/share/common-licenses"
#define OTHER 127 /* for every byte that is not ASCII */

/* ---- the text ---------------------------------------------------------------- */

static int read_file(struct text *t, const char *path)
{
    unsigned char block[1 << 16];
    FILE *f = fopen(path, "rb");
    size_t n;
    int failed;

    if (!f) {
        fprintf(stderr, "bigram: cannot open '%s': %s\n", path, strerror(errno));
        return -1;
    }
    while ((n = fread(block, 1, sizeof block, f)) > 0) {
        unsigned char *more = realloc(t->symbols, t->n + n);

        if (!more)
            break;
        t->symbols = more;
        for (size_t i = 0; i < n; i++)
            t->symbols[t->n++] = block[i] < OTHER ? block[i] : OTHER;
    }
    failed = ferror(f) || n > 0;
    if (failed)
        fprintf(stderr, "bigram: cannot read '%s': %s\n", path, strerror(errno));
    fclose(f);
    return failed ? -1 : 0;
}

static int read_folder(struct text *t)
{
    struct dirent **entry;
    int n = scandir(FOLDER, &entry, NULL, alphasort), status = 0;

    if (n < 0) {
        fprintf(stderr, "bigram: cannot read '%s': %s; name text files instead\n", FOLDER,
                strerror(errno));
        return -1;
    }
    for (int i = 0; i < n; i++) {
        char path[sizeof FOLDER + 1 + sizeof entry[i]->d_name];
        struct stat st;

        snprintf(path, sizeof path, "%s/%s", FOLDER, entry[i]->d_name);
        if (status == 0 && lstat(path, &st) == 0 && S_ISREG(st.st_mode))
            status = read_file(t, path);
        free(entry[i]);
    }
    free(entry);
    return status;
}

int text_read(struct text *t, char *const *files, size_t n_files)
{
    int status = 0;

    *t = (struct text){ NULL, 0 };
    if (n_files == 0)
        status = read_folder(t);
    for (size_t i = 0; i < n_files && status == 0; i++)
        status = read_file(t, files[i]);
    if (status == 0 && t->n < 2) {
        fprintf(stderr, "bigram: the text has %zu characters, at least 2 are needed\n", t->n);
        status = -1;
    }
    if (status != 0)
        text_free(t);
    return status;
}

void text_free(struct text *t)
{
    free(t->symbols);
    *t = (struct text){ NULL, 0 };
}

size_t text_count(const struct text *t, size_t i, size_t n, double count[CELLS])
{
    const size_t pairs = t->n - 1;
    const size_t begin = pairs / n * i + (i < pairs % n ? i : pairs % n);
    const size_t end = begin + pairs / n + (i < pairs % n ? 1 : 0);

    for (size_t k = begin; k < end; k++)
        count[(size_t)t->symbols[k] * SYMBOLS + t->symbols[k + 1]] += 1;
    return end - begin;
}

/* ---- the model ---------------------------------------------------------------- */

static double sum_of(const double row[SYMBOLS])
{
    double sum = 0;

    for (size_t b = 0; b < SYMBOLS; b++)
        sum += row[b];
    return sum;
}

double bigram_optimum(const double count[CELLS])
{
    double loss = 0, pairs = 0;

    for (size_t a = 0; a < SYMBOLS; a++) {
        const double *row = count + a * SYMBOLS, total = sum_of(row);

        for (size_t b = 0; b < SYMBOLS; b++)
            if (row[b] > 0)
                loss -= row[b] * log(row[b] / total);
        pairs += total;
    }
    return exp(loss / pairs);
}

/* p of every b after one a. Subtracts the largest logit, which cancels out, so that
 * exp cannot overflow. */
static void softmax(const float logits[SYMBOLS], double p[SYMBOLS])
{
    double largest = (double)logits[0], sum = 0;

    for (size_t b = 1; b < SYMBOLS; b++)
        largest = fmax(largest, (double)logits[b]);
    for (size_t b = 0; b < SYMBOLS; b++)
        sum += p[b] = exp((double)logits[b] - largest);
    for (size_t b = 0; b < SYMBOLS; b++)
        p[b] /= sum;
}

double bigram_loss(const double count[CELLS], const float logits[CELLS], float gradient[CELLS])
{
    double loss = 0, p[SYMBOLS];

    for (size_t a = 0; a < SYMBOLS; a++) {
        const double *row = count + a * SYMBOLS, total = sum_of(row);

        softmax(logits + a * SYMBOLS, p);
        for (size_t b = 0; b < SYMBOLS; b++) {
            if (row[b] > 0)
                loss -= row[b] * log(p[b]);
            if (gradient)
                gradient[a * SYMBOLS + b] = (float)(total * p[b] - row[b]);
        }
    }
    return loss;
}

void adam_step(struct adam *a, int steps, const double gradient[CELLS], float logits[CELLS])
{
    static const double rate = 0.5, keep_mean = 0.9, keep_square = 0.99, tiny = 1e-12;
    const double length = rate * (1.0 - (double)a->step / steps);
    double mean_scale, square_scale;

    a->step++;
    /* Corrects the bias of both averages towards their start at zero. */
    mean_scale = 1 / (1 - pow(keep_mean, a->step));
    square_scale = 1 / (1 - pow(keep_square, a->step));
    for (size_t i = 0; i < CELLS; i++) {
        double g = gradient[i];

        a->mean[i] = keep_mean * a->mean[i] + (1 - keep_mean) * g;
        a->square[i] = keep_square * a->square[i] + (1 - keep_square) * g * g;
        logits[i] -=
            (float)(length * a->mean[i] * mean_scale / (sqrt(a->square[i] * square_scale) + tiny));
    }
}
