/* SPDX-License-Identifier: Apache-2.0 */
/* plain.h - the frames of a message without tensors, in one piece.
 *
 * Nearly all messages have no tensors, and their frames differ in few bytes. They are written from
 * templates and recognised by comparison with these; descriptor.h handles all others. */
#ifndef TENSORPIPE_PLAIN_H
#define TENSORPIPE_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of all five frames without the payload, at most. */
#define PLAIN_FRAMES_MAX 132

/* Writes them with a payload below 4 GiB, and returns their length. */
size_t plain_write(unsigned char *to, int32_t type, int64_t id, const void *payload,
                   uint64_t payload_len);

struct plain {
    int32_t type;
    int64_t id;
    const unsigned char *payload;
    size_t payload_len;
    size_t len; /* of all frames */
};

/* Returns true if `data` begins with a complete message of this form. */
bool plain_read(const unsigned char *data, size_t len, struct plain *ret);

#endif
