/* SPDX-License-Identifier: Apache-2.0 */
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
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

static bool make_room(struct stream *s, size_t n)
{
    size_t room = s->room ? s->room : 512;
    char *p;

    if (s->len + n <= s->room)
        return true;
    while (room < s->len + n)
        room *= 2;
    p = realloc(s->buf, room);
    if (!p)
        return false;
    s->buf = p;
    s->room = room;
    return true;
}

static void begin_line(struct stream *s)
{
    size_t n = strlen(s->prefix);

    s->len = 0;
    s->returned = false;
    s->broken = !make_room(s, n + 1);
    if (!s->broken) {
        memcpy(s->buf, s->prefix, n);
        s->len = n;
    }
}

static void stream_append(struct stream *s, const char *data, size_t n)
{
    if (s->broken || !make_room(s, n + 1)) {
        s->broken = true;
        return;
    }
    memcpy(s->buf + s->len, data, n);
    s->len += n;
}

static void end_line(struct stream *s)
{
    if (!s->broken) {
        s->buf[s->len++] = '\n'; /* append always leaves room for one byte */
        screen_print(s->screen, s->fd, s->buf, s->len);
    }
    begin_line(s);
}

/* Keeps only the text after the last carriage return, which a terminal would show. */
static void keep_last_part(struct stream *s)
{
    size_t start = strlen(s->prefix), end = s->len, at;

    if (s->broken)
        return;
    s->returned = end > start && s->buf[end - 1] == '\r';
    while (end > start && s->buf[end - 1] == '\r')
        end--;
    for (at = end; at > start && s->buf[at - 1] != '\r'; at--)
        ;
    memmove(s->buf + start, s->buf + at, end - at);
    s->len = start + (end - at);
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
    while (s->len + n > LINE_MAX_BYTES) {
        size_t k = LINE_MAX_BYTES - s->len;

        stream_append(s, data, k);
        end_line(s);
        data += k;
        n -= k;
    }
    stream_append(s, data, n);
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
    if (s->live && !s->broken && s->len > strlen(s->prefix)) {
        sc->shown = s->buf;
        sc->shown_len = s->len;
        stream_show(sc);
    }
}

void stream_finish(struct stream *s)
{
    if (s->live) {
        stream_hide(s->screen);
        s->screen->shown = NULL;
    }
    if (s->buf && s->len > strlen(s->prefix))
        end_line(s);
    free(s->buf);
    s->buf = NULL;
    s->len = s->room = 0;
    s->broken = true;
}
