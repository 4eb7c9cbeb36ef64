/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/message.h - messages between agents: for plugins, and for programs that send messages
 * without RPC (tenrec/chain.h). */
#ifndef TENREC_MESSAGE_H
#define TENREC_MESSAGE_H

#include <tenrec/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sent in place of the bytes of a shared tensor. */
#define TENREC_SHARE_RECORD 16
#define TENREC_SHARE_FDS 3

struct tenrec_share {
    uint32_t size; /* sizeof(struct tenrec_share) */
    uint32_t n_fds;
    int32_t fd[TENREC_SHARE_FDS];              /* owned by the holder of the struct */
    unsigned char record[TENREC_SHARE_RECORD]; /* for the core at the other end */
};

/* Message types: TensorPipeAgent's numbers. Any other number passes through
 * untouched. Requests have 0x100, responses 0x200. The 0x180 range is Tenrec's
 * own and is sent to Tenrec peers only. */
/* clang-format off */
#define TENREC_MSG_TYPE_MAP(X)                                                                     \
    X(SCRIPT_CALL,                   0x100)                                                        \
    X(SCRIPT_RET,                    0x201)                                                        \
    X(CALL,                          0x102)                                                        \
    X(RET,                           0x203)                                                        \
    X(SCRIPT_REMOTE_CALL,            0x104)                                                        \
    X(REMOTE_CALL,                   0x105)                                                        \
    X(REMOTE_RET,                    0x206)                                                        \
    X(SCRIPT_RREF_FETCH_CALL,        0x107)                                                        \
    X(RREF_FETCH_CALL,               0x108)                                                        \
    X(SCRIPT_RREF_FETCH_RET,         0x209)                                                        \
    X(RREF_FETCH_RET,                0x20a)                                                        \
    X(RREF_USER_DELETE,              0x10b)                                                        \
    X(RREF_FORK_REQUEST,             0x10c)                                                        \
    X(RREF_CHILD_ACCEPT,             0x10d)                                                        \
    X(RREF_ACK,                      0x20e)                                                        \
    X(FORWARD_AUTOGRAD_REQ,          0x10f)                                                        \
    X(FORWARD_AUTOGRAD_RESP,         0x210)                                                        \
    X(BACKWARD_AUTOGRAD_REQ,         0x111)                                                        \
    X(BACKWARD_AUTOGRAD_RESP,        0x212)                                                        \
    X(CLEANUP_AUTOGRAD_CONTEXT_REQ,  0x113)                                                        \
    X(CLEANUP_AUTOGRAD_CONTEXT_RESP, 0x214)                                                        \
    X(RUN_WITH_PROFILING_REQ,        0x115)                                                        \
    X(RUN_WITH_PROFILING_RESP,       0x216)                                                        \
    X(RREF_BACKWARD_REQ,             0x117)                                                        \
    X(RREF_BACKWARD_RESP,            0x218)                                                        \
    X(EXCEPTION,                     0x237)                                                        \
    X(ONE_WAY_CALL,                  0x180)        /* a call without an answer */                  \
    X(CANCEL,                        0x181)        /* payload empty; id of the call; no answer */  \
    X(GATHER,                        0x182)        /* barrier and all_gather */                    \
    X(GATHER_RET,                    0x283)                                                        \
    X(VIEW,                          0x184)        /* members of a dynamic group about its view */ \
    X(VIEW_RET,                      0x285)                                                        \
    X(BULK_READ,                     0x186)        /* bytes of a region */                         \
    X(BULK_READ_RET,                 0x287)                                                        \
    X(BULK_WRITE,                    0x188)        /* bytes for a region */                        \
    X(BULK_WRITE_RET,                0x289)                                                        \
    X(LINK,                          0x18a)        /* of a worker outside the group; no answer */
/* clang-format on */

enum tenrec_msg_type {
#define TENREC_MSG_TYPE_ENUM(name, number) TENREC_MSG_##name = (number),
    TENREC_MSG_TYPE_MAP(TENREC_MSG_TYPE_ENUM)
#undef TENREC_MSG_TYPE_ENUM
};

/* Returns the name of a type without its prefix, such as "CALL"; NULL if the number has none. */
static inline const char *tenrec_msg_type_name(int32_t type)
{
    switch (type) {
#define TENREC_MSG_TYPE_CASE(name, number)                                                         \
    case TENREC_MSG_##name:                                                                        \
        return #name;
        TENREC_MSG_TYPE_MAP(TENREC_MSG_TYPE_CASE)
#undef TENREC_MSG_TYPE_CASE
    }
    return NULL;
}

#define TENREC_MSG_REQUEST_BIT 0x100
#define TENREC_MSG_RESPONSE_BIT 0x200

enum tenrec_msg_flags {
    TENREC_MSG_CONTROL = 1u << 0,  /* exempt from queue limits */
    TENREC_MSG_MAY_WAIT = 1u << 1, /* send may block for room in the queue, until deadline_ns;
                                      cleared before a send from another thread */
    TENREC_MSG_PROVED = 1u << 2,   /* of a message to place or to deliver, request or answer: its
                                      sender has proved the group secret on the connection that
                                      brought it (proof.h). Set by the backend that checked the
                                      proof; a wrapper keeps it */
    TENREC_MSG_POLLED = 1u << 3,   /* of a request: its sender polls for the answer next, so that
                                      no other thread needs to hear of it; a wrapper keeps it */
};

/* The route of the answer to a delivered request; opaque except to the agent that made it. If the
 * route is closed, the answer is dropped and never sent over another route.
 * Never grows: it is passed by value. */
struct tenrec_route {
    uint64_t pipe;
    uint64_t generation; /* 0: no route */
};

/* One message. Ownership moves with the pointer: the owner either passes the message on or calls
 * msg->release(msg), once. All memory that it points to lives until then. */
struct tenrec_msg {
    uint32_t size;        /* sizeof(struct tenrec_msg) of its maker */
    int32_t type;         /* as on the wire */
    int64_t id;           /* pairs a response with its request */
    uint64_t deadline_ns; /* CLOCK_MONOTONIC, advisory; 0 = none */
    void *payload;        /* host memory */
    uint64_t payload_len; /* bytes */
    uint32_t key_len;     /* prefix of the payload with function and arguments; the rest varies */
    uint32_t flags;       /* enum tenrec_msg_flags */
    uint32_t n_tensors;
    uint32_t tensor_size; /* bytes from one descriptor to the next */
    struct tenrec_tensor_desc *tensors;
    struct tenrec_route route; /* of a delivered request and of its response */
    void (*release)(struct tenrec_msg *msg);
    uint64_t reserved[4]; /* zero */
};

static inline struct tenrec_tensor_desc *tenrec_msg_tensor(const struct tenrec_msg *msg, uint32_t i)
{
    return (struct tenrec_tensor_desc *)(void *)((char *)msg->tensors +
                                                 (size_t)i * msg->tensor_size);
}

/* Bytes of the payload and of the storages of all tensors. */
static inline uint64_t tenrec_msg_bytes(const struct tenrec_msg *msg)
{
    uint64_t bytes = msg->payload_len;

    for (uint32_t i = 0; i < msg->n_tensors; i++)
        bytes += tenrec_msg_tensor(msg, i)->bytes;
    return bytes;
}

#ifdef __cplusplus
}
#endif

#endif
