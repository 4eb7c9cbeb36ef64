/* SPDX-License-Identifier: Apache-2.0 */
/* codec.h - calls, values and errors as payloads (docs/wire.md), and back.
 *
 * Payloads are not trusted; each refusal names the byte. A payload names tensors by
 * their index in the message. */
#ifndef TENREC_VALUE_CODEC_H
#define TENREC_VALUE_CODEC_H

#include <stdbool.h>
#include <tenrec/message.h>
#include <tenrec/value.h>

#include "rpc/value/trace.h"
#include "rpc/value/value.h"

/* Tags of private use; see docs/wire.md. */
#define CODEC_TAG_TENSOR UINT64_C(52596)
#define CODEC_OPTION_SPANS "spans"       /* option of a call */
#define CODEC_OPTION_TRACE "trace"       /* likewise */
#define CODEC_TAG_RREF UINT64_C(52597)   /* a remote reference */
#define CODEC_TAG_DEREF UINT64_C(52598)  /* the value that the receiver owns */
#define CODEC_TAG_OBJECT UINT64_C(52599) /* an object, encoded */
#define CODEC_TAG_REGION UINT64_C(52600) /* a reference to a region */

/* Returns true if the payload begins like those of Tenrec; no pickle or plain text does. */
bool codec_is_cbor(const struct tenrec_msg *msg);

/* Returns true if the payload is nil: the answer of a function without a result. */
bool codec_is_nil(const struct tenrec_msg *msg);

/* The value that a remote creation makes, and the reference to the value. */
struct codec_creation {
    struct rref_id id, fork;
};

/* One reference or object of a message that is being written. */
struct codec_ref {
    struct rref_fork fork;
    struct tenrec_value *encoded; /* owns; of an object */
    const char *type;             /* likewise */
};

/* Makes the records of references and objects, where a message may have them. */
struct codec_refs {
    tenrec_status (*fork)(struct codec_refs *refs, struct tenrec_rref *r, bool deref,
                          struct rref_fork *ret, tenrec_error *err);
    struct codec_ref *ref; /* owns; in order of the values */
    size_t n, room;
};

/* Frees the list; the forks belong to the owner of `fork`. */
void codec_refs_finish(struct codec_refs *refs);

/* The parts of a call beside its arguments. Zeroed: none. */
struct codec_extra {
    const struct codec_creation *creation; /* of a REMOTE_CALL */
    struct codec_refs *refs;               /* NULL: references are refused */
    const struct trace_context *trace;     /* NULL: none */
    uint32_t spans_max;                    /* bytes of spans that the answer may carry; 0: none */
    bool deref; /* the first argument, a reference, stands for its value */
};

/* Makes a message of a call; type is `type`, key_len set, id and deadline left
 * to the caller.
 *
 * remaining_ms  how long the caller still waits; TENREC_TIMEOUT_NONE: for ever
 * ret           owns: release or send it
 * errors        EINVAL (text that is not UTF-8, unknown type, nested too
 *               deep), ENOMEM */
tenrec_status codec_write_call(int32_t type, const char *function, const struct tenrec_value *args,
                               size_t n, int64_t remaining_ms, const struct codec_extra *extra,
                               struct tenrec_msg **ret, tenrec_error *err);

/* The start of a call, which names its function. */
struct codec_head {
    const char *function; /* not terminated; borrows until the message is released */
    size_t function_len;
    size_t args_at;                 /* byte of the payload where the arguments begin */
    struct codec_creation creation; /* of a REMOTE_CALL */
};

/* The rest of a call. */
struct codec_call {
    const struct tenrec_value *args; /* texts have a NUL; bytes are the message's */
    size_t n;
    int64_t remaining_ms;           /* TENREC_TIMEOUT_NONE: the caller has no limit */
    uint32_t spans_max;             /* bytes of spans that the caller asks for; 0: none */
    void *heap;                     /* owns; the values, if they did not fit into room; else NULL */
    size_t heap_size;               /* bytes; only where heap is not NULL */
    bool tensors;                   /* the arguments hold shares of tensors */
    uint32_t borrowed;              /* number of leading arguments with other owners */
    bool refers;                    /* the arguments have references or objects: rrefs_take */
    bool traced;                    /* the caller has sent the context of a trace */
    struct trace_context trace;     /* that */
    struct codec_creation creation; /* of a REMOTE_CALL */
    uint64_t room[40];              /* a small call needs no more memory */
};

/* Reads the start of a call. errors: EPROTOCOL */
tenrec_status codec_read_head(const struct tenrec_msg *msg, struct codec_head *ret,
                              tenrec_error *err);

/* Reads the rest, where the call will live. `msg` must live until codec_call_finish;
 * *ret must not move until then (args may point into it) and is not set on failure.
 *
 * errors   EPROTOCOL, ENOMEM */
tenrec_status codec_read_args(const struct tenrec_msg *msg, const struct codec_head *head,
                              struct codec_call *ret, tenrec_error *err);

/* Reads both. */
tenrec_status codec_read_call(const struct tenrec_msg *msg, struct codec_call *ret,
                              tenrec_error *err);
void codec_call_finish(struct codec_call *call);

/* Makes a message whose payload is one value: an answer, or a part of a gather. NULL is
 * nil. */
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

/* The same where references are accepted. *ret_refers: there are some, for rrefs_take. */
tenrec_status codec_read_value_refs(const struct tenrec_msg *msg, struct tenrec_value **ret,
                                    bool *ret_refers, tenrec_error *err);

/* Returns false if the payload surely has no references. */
bool codec_may_refer(const struct tenrec_msg *msg);

/* Returns in *ret the end of the first item of an answer; the bytes that follow were asked
 * for by the call (docs/wire.md). Returns false if the item is malformed. */
bool codec_first_end(const struct tenrec_msg *msg, size_t *ret);

/* Writes `why` as an EXCEPTION: for Tenrec with all that is in it, for others as plain
 * text. When memory has run out, the message is from the reserve (reserve_message).
 *
 * errors   ENOMEM */
tenrec_status codec_write_error(const tenrec_error *why, bool as_cbor, struct tenrec_msg **ret,
                                tenrec_error *err);

/* Marks an error that a function has returned; EREMOTE replaces an unknown status. */
void codec_mark_callee(tenrec_error *why);

/* Reads an EXCEPTION of either form. Plain text is EREMOTE; a malformed payload is
 * EPROTOCOL. Always sets *ret, and never to TENREC_OK. */
void codec_read_error(const struct tenrec_msg *msg, tenrec_error *ret);

/* ---- codec_simple.c: the common calls: a few arguments without references or nested values, no
 * options but a trace; and answers of one number. Such payloads are written and read in one walk;
 * all others, and all refusals, are left to codec_write.c and codec_read.c --------------------- */

/* trace: NULL for none. Returns NULL if the call is not simple, or memory has run out:
 * codec_write_call reports the error. */
struct tenrec_msg *codec_simple_write(int32_t type, const char *function,
                                      const struct tenrec_value *args, size_t n,
                                      int64_t remaining_ms, const struct trace_context *trace);

/* The answer with a number or a boolean. Returns NULL if the value is of another type, or
 * memory has run out: codec_write_any_value reports the error. */
struct tenrec_msg *codec_simple_write_value(const struct tenrec_value *value, int32_t type);

/* The value of an answer with a number, a boolean or nil, to be dropped by the caller. Returns
 * NULL if the answer is of another form, or memory has run out: codec_read_any_value reports
 * the error. */
struct tenrec_value *codec_simple_read_value(const struct tenrec_msg *msg);

#endif
