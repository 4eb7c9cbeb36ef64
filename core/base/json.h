/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - writes JSON to a file, one value at a time, so that no document is built in memory. The
 * file's error flag holds a failure. */
#ifndef TENREC_BASE_JSON_H
#define TENREC_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <tenrec/error.h>

struct json {
    FILE *to;
    bool comma; /* due before the next value */
};

/* A value has a key in an object, else NULL. Keys are written as they are; from its second on, an
 * element of an array begins a line. */

/* kind     '{' or '['; json_end has the same */
void json_begin(struct json *j, const char *key, char kind);
void json_end(struct json *j, char kind);

/* Bytes that are not UTF-8 become U+FFFD. */
void json_text(struct json *j, const char *key, const char *text);

/* A text of at most 299 bytes, cut there. */
TENREC_PRINTF(3, 4)
void json_textf(struct json *j, const char *key, const char *fmt, ...);

void json_int(struct json *j, const char *key, int64_t n);

/* Nanoseconds as microseconds with three digits behind the point. */
void json_micros(struct json *j, const char *key, uint64_t ns);

#endif
