/* SPDX-License-Identifier: Apache-2.0 */
#include "run/workers_run.h"

#include <stdio.h>
#include <string.h>

/* A longer line is cut into pieces, each on a line of its own. */
#define LINE_MAX_BYTES ((size_t)16 << 20)

static const char clear[] = "\r\033[K";

static void stream_hide(struct screen *sc)
{
    if (sc->shown)
        sc->write(sc->arg, sc->live_fd, clear, sizeof clear - 1);
}

static void stream_show(struct screen *sc)
{
    if (sc->shown)
        sc->write(sc->arg, sc->live_fd, sc->shown, sc->shown_len);
}

void screen_print(struct screen *sc, int fd, const char *text, size_t n)
{
    bool around = fd == sc->live_fd || sc->terminal[fd];

    if (around)
        stream_hide(sc);
    sc->write(sc->arg, fd, text, n);
    if (around)
        stream_show(sc);
}

static void begin_line(struct stream *s)
{
    s->line.len = 0;
    s->line.failed = false;
    s->returned = false;
    bytes_add(&s->line, s->prefix, strlen(s->prefix));
}

static void end_line(struct stream *s)
{
    bytes_add(&s->line, "\n", 1);
    if (!s->line.failed)
        screen_print(s->screen, s->fd, (const char *)s->line.data, s->line.len);
    begin_line(s);
}

/* Keeps only the text after the last carriage return, which a terminal would show. */
static void keep_last_part(struct stream *s)
{
    size_t start = strlen(s->prefix), end = s->line.len, at;
    uint8_t *text = s->line.data;

    if (s->line.failed)
        return;
    s->returned = end > start && text[end - 1] == '\r';
    while (end > start && text[end - 1] == '\r')
        end--;
    for (at = end; at > start && text[at - 1] != '\r'; at--)
        ;
    memmove(text + start, text + at, end - at);
    s->line.len = start + (end - at);
}

void stream_init(struct stream *s, struct screen *screen, int fd, const char *prefix, bool live)
{
    memset(s, 0, sizeof *s);
    s->screen = screen;
    s->fd = fd;
    s->live = live;
    snprintf(s->prefix, sizeof s->prefix, "%s", prefix);
    begin_line(s);
}

static void put_pieces(struct stream *s, const char *data, size_t n)
{
    while (s->line.len + n > LINE_MAX_BYTES) {
        size_t k = LINE_MAX_BYTES - s->line.len;

        bytes_add(&s->line, data, k);
        end_line(s);
        data += k;
        n -= k;
    }
    bytes_add(&s->line, data, n);
}

void stream_feed(struct stream *s, const char *data, size_t n)
{
    struct screen *sc = s->screen;

    if (s->live) {
        stream_hide(sc);
        sc->shown = NULL;
    }
    while (n) {
        const char *end = memchr(data, '\n', n);
        size_t k = end ? (size_t)(end - data) : n;

        if (s->returned && k)
            begin_line(s);
        put_pieces(s, data, k);
        if (s->live && k)
            keep_last_part(s);
        if (end) {
            end_line(s);
            k++;
        }
        data += k;
        n -= k;
    }
    if (s->live && !s->line.failed && s->line.len > strlen(s->prefix)) {
        sc->shown = (const char *)s->line.data;
        sc->shown_len = s->line.len;
        stream_show(sc);
    }
}

void stream_finish(struct stream *s)
{
    if (s->live) {
        stream_hide(s->screen);
        s->screen->shown = NULL;
    }
    if (s->line.len > strlen(s->prefix))
        end_line(s);
    bytes_free(&s->line);
}
