/* SPDX-License-Identifier: Apache-2.0 */
/* brief.c - the tensors of brief messages. */
#include "wire/brief.h"
#include "wire/descriptor.h"

#include <tenrec/message.h>

#define PAYLOAD_LEN 2
#define STORAGE_MIN 9
#define STORAGE_BYTES_MAX (UINT64_C(1) << 60) /* so that no sum of them overflows */

size_t brief_write_tensors(unsigned char *to, const struct tenrec_msg *msg,
                           const struct descriptor_note *notes, const void *list, size_t list_len)
{
    unsigned char *at = to + BRIEF_HEAD;
    unsigned n = 0;

    if (PAYLOAD_LEN + msg->payload_len + list_len +
            (size_t)BRIEF_STORAGES_MAX * (STORAGE_MIN + DESCRIPTOR_NOTE_MAX) >
        BRIEF_BODY_MAX)
        return 0;
    put_le16(at, (uint16_t)msg->payload_len);
    at += PAYLOAD_LEN;
    if (msg->payload_len)
        memcpy(at, msg->payload, (size_t)msg->payload_len);
    at += msg->payload_len;
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        if (t->same_storage)
            continue;
        if (n++ == BRIEF_STORAGES_MAX || notes[i].len > DESCRIPTOR_NOTE_MAX)
            return 0;
        put_le64(at, t->bytes);
        at[8] = notes[i].len;
        memcpy(at + STORAGE_MIN, notes[i].bytes, notes[i].len);
        at += STORAGE_MIN + notes[i].len;
    }
    if (!n)
        return 0;
    memcpy(at, list, list_len);
    at += list_len;
    brief_write_head(to, msg->type, msg->id, (size_t)(at - to) - BRIEF_HEAD, n);
    return (size_t)(at - to);
}

bool brief_read_tensors(const unsigned char *data, struct brief *ret)
{
    const unsigned char *at = data + BRIEF_HEAD, *const end = data + ret->plain.len;

    if (end - at < PAYLOAD_LEN)
        return false;
    ret->plain.payload_len = at[0] | (size_t)at[1] << 8;
    ret->plain.payload = at += PAYLOAD_LEN;
    if ((size_t)(end - at) < ret->plain.payload_len)
        return false;
    at += ret->plain.payload_len;
    for (unsigned i = 0; i < ret->n; i++) {
        if (end - at < STORAGE_MIN || end - at - STORAGE_MIN < at[8])
            return false;
        ret->storage[i].bytes = get_le64(at);
        ret->storage[i].note = (struct nop_bytes){ at + STORAGE_MIN, at[8] };
        if (ret->storage[i].bytes > STORAGE_BYTES_MAX)
            return false;
        at += STORAGE_MIN + at[8];
    }
    ret->list = at;
    ret->list_len = (size_t)(end - at);
    return true;
}
