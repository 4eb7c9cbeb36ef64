/* SPDX-License-Identifier: Apache-2.0 */
/* head.h - the byte formats between two agents of this plugin: no socket, no thread, no UCX.
 *
 * Each active message has a head of HEAD_LEN bytes, little-endian:
 *
 *      0  u32 magic        4  u8 version       5  u8 kind        6  u16 flags
 *      8  u64 sequence    16  i32 type        20  u32 count
 *     24  i64 id          32  u64 length      40  u64 list_len
 *     48  16 bytes: the receiver's cookie
 *
 * HEAD_PROOF    bytes of the proof of the group secret (proof.h of the core). The data is the
 *               sender's cookie, then those bytes
 * HEAD_HELLO    the first of each direction, after a proof. type: the sender's id; id: its
 *               incarnation; count: the receiver's id; length: the incarnation that it must have;
 *               list_len: the largest message that the sender reads (payload and tensors)
 * HEAD_MESSAGE  type, id; count: tensors; length: bytes of the payload. The data is the list of
 *               tensors (list_len bytes), the payload unless HEAD_APART, and the bytes of each
 *               tensor that is not apart
 * HEAD_PART     bytes of the message `sequence` that travel apart. count: 0 for the payload, else
 *               1 + the tensor's index
 * HEAD_TAKEN    length: bytes of messages that the receiver has delivered, since the connection
 *               began
 * HEAD_BYE      the sender shuts down: nothing follows. The receiver answers with its own
 *
 * All but parts and takens of one direction are numbered without gaps from 0, and delivered in that
 * order.
 *
 * The connection of an active message is a number inside it, which any process that reaches the
 * worker can write. The cookie names its receiver: 128 random bits, which a side draws for one
 * connection and sends to the other side of that connection. 0: the receiver has sent none, as on a
 * connection without a proof and in the first message of the client.
 *
 * A sender waits for the hello of the receiver before it sends a message of more than
 * HEAD_MESSAGE_LEAST bytes, and sends none above the limit in that hello. */
#ifndef UCX_HEAD_H
#define UCX_HEAD_H

#include <tenrec/error.h>
#include <tenrec/message.h>

#include <stdbool.h>

enum {
    HEAD_LEN = 64,
    HEAD_COOKIE_LEN = 16,
    HEAD_TENSOR_LEAST = 64,    /* bytes that the entry of a tensor takes at least */
    HEAD_MESSAGE_LEAST = 4096, /* bytes of payload and tensors that each receiver reads */
    HEAD_COST = 128, /* bytes of each message beside payload and tensors, as both sides count */
    HEAD_INLINE_TENSOR = 8 << 10, /* bytes; larger tensors travel apart */
    HEAD_INLINE_ALL = 64 << 10,   /* of all tensors of a message, and of its payload */
};

enum head_kind { HEAD_HELLO = 1, HEAD_MESSAGE, HEAD_PART, HEAD_TAKEN, HEAD_BYE, HEAD_PROOF };
enum head_flags { HEAD_APART = 1 }; /* the payload travels apart */

struct head {
    uint8_t kind; /* enum head_kind */
    uint16_t flags;
    uint64_t sequence;
    int32_t type;
    uint32_t count;
    int64_t id;
    uint64_t length;
    uint64_t list_len;
    unsigned char cookie[HEAD_COOKIE_LEN];
    uint64_t inline_len; /* not on the wire: bytes behind the list */
};

void head_write(unsigned char out[HEAD_LEN], const struct head *h);

/* errors   EPROTOCOL: not `len` == HEAD_LEN bytes of this version and of a known kind */
tenrec_status head_read(const void *in, size_t len, struct head *ret, tenrec_error *err);

/* In constant time. */
bool head_cookies_match(const unsigned char a[HEAD_COOKIE_LEN],
                        const unsigned char b[HEAD_COOKIE_LEN]);

/* Bytes of the entry of one tensor. */
size_t head_tensor_len(const struct tenrec_tensor_desc *t);

/* Writes the entry; returns its end. apart: the tensor's bytes travel apart. */
unsigned char *head_tensor_write(unsigned char *out, const struct tenrec_tensor_desc *t,
                                 bool apart);

/* Reads the entry of tensor `i` of `msg`, whose earlier entries were read, at *at before `end`,
 * and moves *at behind it. A view that reaches beyond its storage is refused.
 *
 * errors   EPROTOCOL
 */
tenrec_status head_tensor_read(const unsigned char **at, const unsigned char *end,
                               const struct tenrec_msg *msg, uint32_t i, bool *ret_apart,
                               tenrec_error *err);

#endif
