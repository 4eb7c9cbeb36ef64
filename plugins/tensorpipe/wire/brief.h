/* SPDX-License-Identifier: Apache-2.0 */
/* brief.h - small messages among Tenrec peers: 16 bytes and what they have.
 *
 * The frames of plain.h take 122 bytes around the payload, which is more than most calls and
 * answers have. Between two processors each cache line of them takes as long as the rest of a
 * message, so peers that named IDENTITY_BRIEF_MESSAGES get this form instead. All numbers little
 * endian:
 *
 *     type (4), length of the body (2), storages (1), 0x80 (1), id (8), the body
 *
 * The last bit of the first 8 bytes distinguishes it from a frame, which begins with its length.
 * Without storages the body is the payload. With storages, tensors of which no byte is in the body,
 * it is
 *
 *     length of the payload (2), the payload, of each storage: bytes (8), length of the note (1),
 *     the note; then the short list of tensors (tensorlist.h) */
#ifndef TENSORPIPE_BRIEF_H
#define TENSORPIPE_BRIEF_H

#include "wire/little_endian.h"
#include "wire/nop.h"
#include "wire/plain.h"
#include <tenrec/types.h>

#define BRIEF_HEAD 16
#define BRIEF_BODY_MAX 8192
#define BRIEF_STORAGES_MAX 4
#define BRIEF_MARK 0x80

struct descriptor_note;
struct tenrec_msg;

struct brief {
    struct plain plain;
    unsigned n; /* storages, and what is known of each */
    struct {
        uint64_t bytes;
        struct nop_bytes note;
    } storage[BRIEF_STORAGES_MAX];
    const unsigned char *list; /* of tensors */
    size_t list_len;
};

static inline void brief_write_head(unsigned char *to, int32_t type, int64_t id, size_t body_len,
                                    unsigned storages)
{
    put_le64(to, (uint32_t)type | (uint64_t)body_len << 32 | (uint64_t)storages << 48 |
                     (uint64_t)BRIEF_MARK << 56);
    put_le64(to + 8, (uint64_t)id);
}

/* Writes a message without tensors, whose payload has at most BRIEF_BODY_MAX bytes, and returns
 * its length. */
static inline size_t brief_write(unsigned char *to, int32_t type, int64_t id, const void *payload,
                                 size_t payload_len)
{
    brief_write_head(to, type, id, payload_len, 0);
    if (payload_len)
        memcpy(to + BRIEF_HEAD, payload, payload_len);
    return BRIEF_HEAD + payload_len;
}

/* brief.c: the same with tensors, of at most BRIEF_STORAGES_MAX storages that each have a note, or
 * no bytes. `list`: the short list of these. Returns 0 if it is too long. */
size_t brief_write_tensors(unsigned char *to, const struct tenrec_msg *msg,
                           const struct descriptor_note *notes, const void *list, size_t list_len);

/* Returns true if 8 bytes at `data`, which are there, begin such a message. */
static inline bool brief_is(const unsigned char *data)
{
    return data[7] & BRIEF_MARK;
}

/* The length of the message that begins so; 0: malformed. */
static inline size_t brief_length(const unsigned char *data)
{
    const uint64_t head = get_le64(data), body_len = head >> 32 & 0xffff;

    return data[7] == BRIEF_MARK && data[6] <= BRIEF_STORAGES_MAX && body_len <= BRIEF_BODY_MAX
               ? BRIEF_HEAD + (size_t)body_len
               : 0;
}

/* brief.c: reads the storages of a message whose length and id ret->plain has. Returns false if
 * they are malformed. */
bool brief_read_tensors(const unsigned char *data, struct brief *ret);

/* Reads a whole message of that length. Returns false if it is malformed. */
static inline bool brief_read(const unsigned char *data, size_t len, struct brief *ret)
{
    ret->plain.type = (int32_t)get_le32(data);
    ret->plain.id = (int64_t)get_le64(data + 8);
    ret->plain.payload = data + BRIEF_HEAD;
    ret->plain.payload_len = len - BRIEF_HEAD;
    ret->plain.len = len;
    ret->n = data[6];
    return !ret->n || brief_read_tensors(data, ret);
}

#endif
