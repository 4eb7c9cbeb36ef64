/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - the output of several workers on one screen or in one file.
 *
 * A stream collects what one worker writes to stdout or stderr and gives it out
 * line by line behind a prefix, so that lines of different workers never mix.
 * On a terminal a live stream also shows the line that is not finished yet, as
 * the last line of the screen: a progress bar (text between carriage returns)
 * keeps moving while the lines of others scroll above it. */
#ifndef TENREC_TOOLS_STREAM_H
#define TENREC_TOOLS_STREAM_H

#include <stdbool.h>
#include <stddef.h>

/* Where all streams of a run go. */
struct screen {
    /* Writes all of it to the file; may give up. */
    void (*write)(void *arg, int fd, const char *data, size_t n);
    void *arg;
    int live_fd;       /* where the unfinished line is shown */
    bool terminal[3];  /* by file descriptor: 1 and 2 count */
    const char *shown; /* the unfinished line, borrowed from its stream */
    size_t shown_len;
};

struct stream {
    struct screen *screen;
    int fd; /* 1 or 2 */
    bool live;
    char prefix[16]; /* "" for none */
    char *buf;       /* begins with the prefix */
    size_t len, room;
    bool returned; /* live: the next text goes over what is there */
    bool broken;   /* out of memory: what comes is dropped */
};

/* Prints whole lines, above the one that is shown unfinished. */
void screen_print(struct screen *sc, int fd, const char *text, size_t n);

/* `prefix` is "[3] " or "". */
void stream_init(struct stream *s, struct screen *screen, int fd, const char *prefix, bool live);

void stream_feed(struct stream *s, const char *data, size_t n);

/* Gives out a last line that has no end, and frees the buffer. */
void stream_finish(struct stream *s);

#endif
