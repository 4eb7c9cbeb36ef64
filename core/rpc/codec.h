/* SPDX-License-Identifier: Apache-2.0 */
/* codec.h - calls, values and errors as payloads (docs/wire.md), and back.
 *
 * Nothing that is read is trusted; each refusal says at which byte. Tensors do
 * not enter the payload: they are the message's, by index. */
#ifndef TENREC_RPC_CODEC_H
#define TENREC_RPC_CODEC_H

#include <stdbool.h>
#include <tenrec/value.h>

#include "rpc/rref_id.h"
#include "rpc/value_flags.h"

/* Kept private by those who do not register; see docs/wire.md. */
#define CODEC_TAG_TENSOR UINT64_C(52596)
#define CODEC_OPTION_SPANS "spans"       /* option of a call */
#define CODEC_TAG_RREF UINT64_C(52597)   /* a remote reference */
#define CODEC_TAG_DEREF UINT64_C(52598)  /* the value that the receiver owns */
#define CODEC_TAG_OBJECT UINT64_C(52599) /* an object, encoded */

/* Does the payload begin as Tenrec's do? A pickle and plain text never do. */
bool codec_is_cbor(const struct tenrec_msg *msg);

/* Is the payload that of nil, as the answer of a function without a result is? */
bool codec_is_nil(const struct tenrec_msg *msg);

/* What a remote creation makes, and the reference to it. */
struct codec_creation {
    struct rref_id id, fork;
};

/* One reference or object of a message that is being written. */
struct codec_ref {
    struct rref_fork fork;
    struct tenrec_value *encoded; /* owns; of an object */
    const char *type;             /* likewise */
};

/* Where references and objects may go, this makes what stands for them. */
struct codec_refs {
    tenrec_status (*fork)(struct codec_refs *refs, struct tenrec_rref *r, bool deref,
                          struct rref_fork *ret, tenrec_error *err);
    struct codec_ref *ref; /* owns; in order of the values */
    size_t n, room;
};

/* Frees the list; what was forked is fork's matter. */
void codec_refs_finish(struct codec_refs *refs);

/* What a call may bring beside its arguments. Zeroed: nothing. */
struct codec_extra {
    const struct codec_creation *creation; /* of a REMOTE_CALL */
    struct codec_refs *refs;               /* NULL: references are refused */
    uint32_t spans_max;                    /* as codec_write_call_asking */
};

/* Makes a message of a call; type is `type`, key_len set, id and deadline left
 * to the caller.
 *
 * remaining_ms  what the caller still waits; TENREC_TIMEOUT_NONE: for ever
 * ret           owns: release or send it
 * errors        EINVAL (text that is not UTF-8, unknown type, nested too
 *               deep), ENOMEM */
tenrec_status codec_write_call(int32_t type, const char *function, const struct tenrec_value *args,
                               size_t n, int64_t remaining_ms, struct tenrec_msg **ret,
                               tenrec_error *err);

/* The same, which asks for the spans of the call: at most `spans_max` bytes of
 * them behind the answer's value; 0 asks for none. */
tenrec_status codec_write_call_asking(int32_t type, const char *function,
                                      const struct tenrec_value *args, size_t n,
                                      int64_t remaining_ms, uint32_t spans_max,
                                      struct tenrec_msg **ret, tenrec_error *err);

/* The same with all that there is. */
tenrec_status codec_write_call_with(int32_t type, const char *function,
                                    const struct tenrec_value *args, size_t n, int64_t remaining_ms,
                                    const struct codec_extra *extra, struct tenrec_msg **ret,
                                    tenrec_error *err);

struct codec_call {
    const char *function; /* not terminated; borrowed from the message */
    size_t function_len;
    const struct tenrec_value *args; /* texts have a NUL; bytes are the message's */
    size_t n;
    int64_t remaining_ms;           /* TENREC_TIMEOUT_NONE when the caller did not say */
    uint32_t spans_max;             /* bytes of spans that the caller asks for; 0: none */
    void *heap;                     /* what did not fit into room; NULL */
    bool tensors;                   /* the arguments hold shares of some */
    uint32_t borrowed;              /* of the arguments, the first: not ours to drop */
    bool refers;                    /* they have references or objects: rrefs_take */
    struct codec_creation creation; /* of a REMOTE_CALL */
    uint64_t room[40];              /* a small call needs no more memory */
};

/* Reads a call. `msg` must live until codec_call_finish; *ret must not move
 * until then (args may point into it) and is not set on failure.
 *
 * errors   EPROTOCOL, ENOMEM */
tenrec_status codec_read_call(const struct tenrec_msg *msg, struct codec_call *ret,
                              tenrec_error *err);
void codec_call_finish(struct codec_call *call);

/* A message whose payload is one value: an answer, or what is gathered. NULL
 * is nil. */
tenrec_status codec_write_value(const struct tenrec_value *value, int32_t type,
                                struct tenrec_msg **ret, tenrec_error *err);

tenrec_status codec_write_value_refs(const struct tenrec_value *value, int32_t type,
                                     struct codec_refs *refs, struct tenrec_msg **ret,
                                     tenrec_error *err);

/* ret      owns: tenrec_value_drop it. Independent of `msg`: tensors are
 *          shared, the rest is copied
 * errors   EPROTOCOL, ENOMEM */
tenrec_status codec_read_value(const struct tenrec_msg *msg, struct tenrec_value **ret,
                               tenrec_error *err);

/* The same where references have a place: *ret_refers says that there are some,
 * to be taken. */
tenrec_status codec_read_value_refs(const struct tenrec_msg *msg, struct tenrec_value **ret,
                                    bool *ret_refers, tenrec_error *err);

/* False when the payload has surely no references. */
bool codec_may_refer(const struct tenrec_msg *msg);

/* Where the first item of an answer ends: what follows was asked for by the
 * call (docs/wire.md). False when there is none that can be read. */
bool codec_first_end(const struct tenrec_msg *msg, size_t *ret);

/* Writes `why` as an EXCEPTION: for Tenrec with all that is in it, for others as plain
 * text. Where there is no memory, the message is from the reserve (rpc/reserve.h).
 *
 * errors   ENOMEM */
tenrec_status codec_write_error(const tenrec_error *why, bool as_cbor, struct tenrec_msg **ret,
                                tenrec_error *err);

/* An error that a function returned: marked so, and EREMOTE when it is no status. */
void codec_mark_callee(tenrec_error *why);

/* What an EXCEPTION says, in either form. Plain text is EREMOTE; what cannot be
 * read is EPROTOCOL and says so. Never leaves *ret unset, and never TENREC_OK. */
void codec_read_error(const struct tenrec_msg *msg, tenrec_error *ret);

#endif
