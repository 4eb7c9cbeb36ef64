/* SPDX-License-Identifier: Apache-2.0 */
#include "prometheus.h"

#include <stdlib.h>
#include <string.h>

#define HELP "# HELP "

/* The lines of one metric in one text; `head` of them are comments. */
struct part {
    const char *name, *at;
    size_t name_len, head, len;
    bool written;
};

struct parts {
    struct part *v;
    size_t n, room;
};

static size_t line_len(const char *at, const char *end)
{
    const char *nl = memchr(at, '\n', (size_t)(end - at));

    return nl ? (size_t)(nl + 1 - at) : (size_t)(end - at);
}

static bool begins(const char *at, const char *end, const char *with)
{
    const size_t n = strlen(with);

    return (size_t)(end - at) > n && memcmp(at, with, n) == 0;
}

/* Reads the part that begins at `at`, by a HELP line that ends: other lines that begin by '#' are
 * of its head, or of its samples. */
static struct part part_read(const char *at, const char *end)
{
    struct part p = { .name = at + strlen(HELP), .at = at };
    const char *next = at + line_len(at, end);

    while (p.name + p.name_len < next && !strchr(" \n", p.name[p.name_len]))
        p.name_len++;
    while (next < end && *next == '#' && !begins(next, end, HELP))
        next += line_len(next, end);
    p.head = (size_t)(next - at);
    while (next < end && !begins(next, end, HELP))
        next += line_len(next, end);
    p.len = (size_t)(next - at);
    return p;
}

static bool parts_add(struct parts *all, const struct part *p)
{
    if (all->n == all->room) {
        const size_t room = all->room ? 2 * all->room : 64;
        struct part *v = realloc(all->v, room * sizeof *v);

        if (!v)
            return false;
        all->v = v;
        all->room = room;
    }
    all->v[all->n++] = *p;
    return true;
}

static bool text_split(const struct merge_text *t, struct parts *all)
{
    const char *at = t->data, *end = t->data + t->len;

    while (at < end) {
        const struct part p = part_read(at, end);

        if (!parts_add(all, &p))
            return false;
        at += p.len;
    }
    return true;
}

static void parts_write(struct parts *all, FILE *to)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct part *first = &all->v[i];

        if (first->written)
            continue;
        fwrite(first->at, 1, first->len, to);
        for (size_t k = i + 1; k < all->n; k++) {
            struct part *p = &all->v[k];

            if (p->written || p->name_len != first->name_len ||
                memcmp(p->name, first->name, p->name_len) != 0)
                continue;
            fwrite(p->at + p->head, 1, p->len - p->head, to);
            p->written = true;
        }
    }
}

int merge_texts(const struct merge_text *text, size_t n, FILE *to)
{
    struct parts all = { 0 };
    int left_out = 0;

    for (size_t i = 0; i < n && left_out >= 0; i++) {
        const char *end = text[i].data + text[i].len;

        /* Each line ends, so that the next text begins on a line of its own. */
        if (!begins(text[i].data, end, HELP) || end[-1] != '\n')
            left_out++;
        else if (!text_split(&text[i], &all))
            left_out = -1;
    }
    if (left_out >= 0)
        parts_write(&all, to);
    free(all.v);
    return left_out;
}
