/* SPDX-License-Identifier: Apache-2.0 */
/* descriptor.h - the object before each message, and the answer to one whose
 * tensors have no target device.
 */
#ifndef TENSORPIPE_DESCRIPTOR_H
#define TENSORPIPE_DESCRIPTOR_H

#include "wire/nop.h"
#include <tenrec/types.h>

#define DESCRIPTOR_AGENT_PAYLOADS 4 /* type, id, payload, tensor list */

struct descriptor_tensor {
    uint64_t length; /* 0: no bytes travel at all for it */
    struct nop_device source;
    struct nop_device target;
    bool has_target; /* without one the sender waits for a DescriptorReply */
    bool on_host;    /* surely both: the names need not be checked */
    struct nop_bytes metadata;
};

/* Limits of a receiver. */
struct descriptor_limits {
    uint32_t max_payloads;
    uint32_t max_tensors;
};

/* A descriptor that was read and found sound: views of its frame. */
struct descriptor {
    struct nop_bytes metadata;
    uint32_t n_payloads, n_tensors;
    uint32_t n_targetless; /* tensors that need a device in a DescriptorReply */
    uint64_t payload_len[DESCRIPTOR_AGENT_PAYLOADS]; /* of the first ones */
    uint64_t payload_bytes, tensor_bytes;            /* sums, together below 2^63 */
    struct nop_reader tensors;                       /* where next_tensor goes on */
    uint32_t tensors_left;
};

/* Checks the whole object, but not whether the message that it announces is too large: its reader
 * needs the end of the message. After a failure *ret is undefined.
 *
 * errors   EPROTOCOL, ETOOBIG (beyond a limit)
 */
tenrec_status descriptor_read(const void *frame, size_t len, const struct descriptor_limits *limits,
                              struct descriptor *ret, tenrec_error *err);

/* One after the other; false after the last. The frame must still be there. */
bool descriptor_next_tensor(struct descriptor *d, struct descriptor_tensor *ret);

/* Bytes that a descriptor with `n` tensors takes at most. */
#define DESCRIPTOR_MAX(n) (72 + (size_t)(n) * (44 + DESCRIPTOR_NOTE_MAX))

/* What one of our own channels says about a tensor: its metadata. */
#define DESCRIPTOR_NOTE_MAX 40
#define DESCRIPTOR_NOTE_LONG 168 /* of a tensor in memory of a device */
struct descriptor_note {
    uint8_t len;
    unsigned char bytes[DESCRIPTOR_NOTE_LONG];
};

/* Writes the agent's form: no metadata, four payloads, every tensor with its
 * target device.
 *
 * tensors  the first of `n`, each `tensor_size` bytes after the one before; one with the
 *          storage of an earlier one is left out
 * notes    one for each; NULL: none
 * return   length of the object; beyond `cap` nothing usable was written.
 *          0 when a tensor lies on a device that the wire cannot name
 */
size_t descriptor_write(void *buf, size_t cap,
                        const uint64_t payload_len[DESCRIPTOR_AGENT_PAYLOADS],
                        const struct tenrec_tensor_desc *tensors, uint32_t n, uint32_t tensor_size,
                        const struct descriptor_note *notes);

/* The device that has that name on the wire; false when there is none. */
bool device_from_wire(const struct nop_device *device, struct tenrec_device *ret);

#define DESCRIPTOR_REPLY_MAX(n) (16 + (size_t)(n)*16)

/* One device for each tensor of the message that had no target, in order. */
size_t descriptor_reply_write(void *buf, size_t cap, const struct nop_device *devices, uint32_t n);

#endif
