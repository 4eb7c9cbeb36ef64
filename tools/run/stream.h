/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - the output of several workers on one screen or in one file.
 *
 * A stream collects the output of one worker to stdout or stderr and prints it line
 * by line with a prefix, so that lines of different workers never mix. On a
 * terminal a live stream also shows its unfinished line as the last line of the
 * screen: a progress bar (text between carriage returns) keeps moving while the
 * lines of other workers scroll above it. */
#ifndef TENREC_TOOLS_STREAM_H
#define TENREC_TOOLS_STREAM_H

#include "group/store/bytes.h"

#include <stdbool.h>
#include <stddef.h>

/* The output of all streams of a run. */
struct screen {
    /* Writes all bytes to `fd`, or drops the rest after an error. */
    void (*write)(void *arg, int fd, const char *data, size_t n);
    void *arg;
    int live_fd;       /* shows the unfinished line */
    bool terminal[3];  /* by file descriptor, 1 and 2 */
    const char *shown; /* the unfinished line, borrowed from its stream */
    size_t shown_len;
};

struct stream {
    struct screen *screen;
    int fd; /* 1 or 2 */
    bool live;
    char prefix[16];   /* "" for none */
    struct bytes line; /* begins with the prefix; failed: the rest of the line is dropped */
    bool returned;     /* live: the next text overwrites the line */
};

/* Prints whole lines, above the unfinished line. */
void screen_print(struct screen *sc, int fd, const char *text, size_t n);

/* `prefix` is "[3] " or "". */
void stream_init(struct stream *s, struct screen *screen, int fd, const char *prefix, bool live);

void stream_feed(struct stream *s, const char *data, size_t n);

/* Prints the unfinished line, if any, and frees the buffer. */
void stream_finish(struct stream *s);

#endif
