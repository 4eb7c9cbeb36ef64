/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_encode.c - messages with tensors, and with large payloads, which are not
 * copied. */
#include "channel/channel.h"
#include "cuda/link/link.h"
#include "pipe/pipe.h"
#include "wire/brief.h"
#include "wire/descriptor.h"
#include "wire/tensorlist.h"

#include <stdlib.h>

/* Heads and bodies of type and id, and the head of the payload. */
#define FIXED_FRAMES (FRAME_HEAD + 4 + FRAME_HEAD + 8 + FRAME_HEAD)

static unsigned char *put_fixed_frames(unsigned char *at, const struct tenrec_msg *msg)
{
    unsigned char type[8], id[8];

    put_le64(type, (uint32_t)msg->type);
    put_le64(id, (uint64_t)msg->id);
    at = conn_put_frame(at, type, 4);
    at = conn_put_frame(at, id, 8);
    put_le64(at, msg->payload_len);
    return at + FRAME_HEAD;
}

/* Of the descriptor, notes of devices included. */
static size_t descriptor_max(const struct tenrec_msg *msg)
{
    size_t n = DESCRIPTOR_MAX(msg->n_tensors);

    for (uint32_t i = 0; i < msg->n_tensors; i++)
        if (tensor_is_on_device(tenrec_msg_tensor(msg, i)))
            n += DESCRIPTOR_NOTE_LONG - DESCRIPTOR_NOTE_MAX;
    return n;
}

/* The descriptor's frame. Returns its end; NULL when a device has no name. */
static unsigned char *put_descriptor(unsigned char *at, const struct tenrec_msg *msg,
                                     size_t list_len, const struct descriptor_note *notes)
{
    const uint64_t len[DESCRIPTOR_AGENT_PAYLOADS] = { 4, 8, msg->payload_len, list_len };
    size_t n = descriptor_write(at + FRAME_HEAD, descriptor_max(msg), len, msg->tensors,
                                msg->n_tensors, msg->tensor_size, notes);

    put_le64(at, n);
    return n ? at + FRAME_HEAD + n : NULL;
}

bool send_request_share(struct pipe *p, const struct tenrec_msg *msg, struct descriptor_note *notes)
{
    const unsigned char kind =
        p->tensors.sharing && p->terms.channel && pipe_has_channel(p) ? p->terms.channel->maps : 0;
    bool all = true;

    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        notes[i].len = 0;
        if (t->same_storage)
            continue;
        if (!kind || tensor_is_on_device(t) ||
            (t->bytes && !shm_handoff_send(p, t, kind, &notes[i])))
            all = false;
    }
    return all;
}

void send_request_take_back(struct pipe *p, const struct tenrec_msg *msg,
                            const struct descriptor_note *notes)
{
    if (p->terms.channel && p->terms.channel->maps)
        shm_handoff_take_back(p, p->terms.channel->maps, notes, msg->n_tensors);
}

/* Returns true if the channel sends the bytes. */
static bool is_sent(const struct tenrec_tensor_desc *t, const struct descriptor_note *note)
{
    return t->bytes && !t->same_storage && !note->len && !tensor_is_on_device(t);
}

static uint64_t sent_bytes(const struct tenrec_msg *msg, const struct descriptor_note *notes)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < msg->n_tensors; i++)
        if (is_sent(tenrec_msg_tensor(msg, i), &notes[i]))
            n += tenrec_msg_tensor(msg, i)->bytes;
    return n;
}

static tenrec_status add_tensors(struct pipe *p, struct send_request *request,
                                 const struct tenrec_msg *msg, struct descriptor_note *notes,
                                 tenrec_error *err)
{
    const struct channel *ch = p->terms.channel;
    const uint64_t together = sent_bytes(msg, notes);
    unsigned n = 0;

    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        if (is_sent(t, &notes[i]))
            n += ch->segments(p, t, together);
        request->pinned = request->pinned || tensor_is_on_device(t) || notes[i].len;
        if (tensor_is_on_device(t))
            link_put_note(p, request, i, &notes[i]);
    }
    if (!n)
        return TENREC_OK;
    if (n <= SEND_REQUEST_FEW)
        request->tensors = memset(request->few, 0, sizeof request->few);
    else
        request->tensors = calloc(n, sizeof *request->tensors);
    if (!request->tensors)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %u tensors", msg->n_tensors);
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        if (is_sent(t, &notes[i]))
            request->n_tensors +=
                ch->send(p, request, t, together, &request->tensors[request->n_tensors], &notes[i]);
    }
    return TENREC_OK;
}

/* Checks the length of an object of the message against the peer's limit. */
static tenrec_status check_object(const struct pipe *p, const struct tenrec_msg *msg,
                                  const char *what, size_t len, tenrec_error *err)
{
    if (!p->terms.max_object || len <= p->terms.max_object)
        return TENREC_OK;
    return tenrec_fail(
        err, TENREC_ETOOBIG,
        "a %s of %zu bytes for %u tensors; " PIPE_PEER " takes %llu at most (its max_object)", what,
        len, msg->n_tensors, PIPE_PEER_ARGS(p), (unsigned long long)p->terms.max_object);
}

/* As its reader counts them. */
static uint64_t message_bytes(const struct tenrec_msg *msg, size_t list_len)
{
    uint64_t n = 4 + 8 + msg->payload_len + list_len;

    for (uint32_t i = 0; i < msg->n_tensors; i++)
        if (!tenrec_msg_tensor(msg, i)->same_storage)
            n += tenrec_msg_tensor(msg, i)->bytes;
    return n;
}

static tenrec_status check_bytes(const struct pipe *p, uint64_t bytes, tenrec_error *err)
{
    if (!p->terms.max_message || bytes <= p->terms.max_message)
        return TENREC_OK;
    return tenrec_fail(
        err, TENREC_ETOOBIG,
        "a message of %llu bytes; " PIPE_PEER " takes %llu at most (its max_message)",
        (unsigned long long)bytes, PIPE_PEER_ARGS(p), (unsigned long long)p->terms.max_message);
}

/* A message that is encoded, before it is queued. */
static tenrec_status check_encoded(const struct pipe *p, const struct tenrec_msg *msg,
                                   size_t descriptor_len, size_t list_len, tenrec_error *err)
{
    tenrec_status st = check_object(p, msg, "descriptor", descriptor_len, err);

    if (!st)
        st = check_object(p, msg, "list", list_len, err);
    return st ? st : check_bytes(p, message_bytes(msg, list_len), err);
}

tenrec_status send_request_check(const struct pipe *p, const struct tenrec_msg *msg,
                                 tenrec_error *err)
{
    if (p->terms.max_object && msg->n_tensors > MESSAGE_TENSORS_MAX)
        return tenrec_fail(err, TENREC_ETOOBIG,
                           "a message with %u tensors; " PIPE_PEER " takes %u at most",
                           msg->n_tensors, PIPE_PEER_ARGS(p), (unsigned)MESSAGE_TENSORS_MAX);
    /* The list of tensors is counted once it is written. */
    return check_bytes(p, message_bytes(msg, msg->n_tensors ? 0 : TENSORLIST_EMPTY_LEN), err);
}

/* The list of tensors, in the shortest form that the peer reads. */
static tenrec_status put_list(const struct pipe *p, const struct tenrec_msg *msg, void *at,
                              size_t *ret_len, tenrec_error *err)
{
    const uint64_t both = IDENTITY_SHORT_LISTS | IDENTITY_ALL_DTYPES;

    if (msg->n_tensors && (p->terms.capabilities & both) == both)
        return shortlist_write(at, msg->tensors, msg->n_tensors, msg->tensor_size, ret_len, err);
    return tensorlist_write(at, TENSORLIST_MAX(msg->n_tensors), msg->tensors, msg->n_tensors,
                            msg->tensor_size, p->terms.capabilities & IDENTITY_ALL_DTYPES, ret_len,
                            err);
}

size_t send_request_encode_small(const struct pipe *p, const struct tenrec_msg *msg,
                                 const struct descriptor_note *notes, unsigned char *to)
{
    unsigned char list[TENSORLIST_MAX(SEND_REQUEST_FEW)], *at;
    size_t list_len, len;

    if (put_list(p, msg, list, &list_len, NULL))
        return 0;
    if (p->terms.capabilities & IDENTITY_BRIEF_MESSAGES && shortlist_is(list, list_len) &&
        (len = brief_write_tensors(to, msg, notes, list, list_len)) > 0)
        return check_encoded(p, msg, 0, list_len, NULL) ? 0 : len;
    at = put_descriptor(to, msg, list_len, notes);
    if (!at || check_encoded(p, msg, (size_t)(at - to) - FRAME_HEAD, list_len, NULL))
        return 0;
    at = put_fixed_frames(at, msg);
    if (msg->payload_len)
        memcpy(at, msg->payload, (size_t)msg->payload_len);
    at = conn_put_frame(at + msg->payload_len, list, list_len);
    return (size_t)(at - to);
}

tenrec_status send_request_encode(struct pipe *p, struct tenrec_msg *msg,
                                  struct descriptor_note *notes, struct send_request **ret,
                                  tenrec_error *err)
{
    size_t heads = FRAME_HEAD + descriptor_max(msg) + FIXED_FRAMES;
    size_t list_len;
    unsigned char *at, *list;
    struct send_request *request;
    tenrec_status st;

    request = send_request_new(p, heads + FRAME_HEAD + TENSORLIST_MAX(msg->n_tensors));
    if (!request)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a message");
    list = request->buf + heads;
    st = put_list(p, msg, list + FRAME_HEAD, &list_len, err);
    if (!st && msg->n_tensors)
        st = add_tensors(p, request, msg, notes, err);
    if (st)
        goto err_out;
    at = put_descriptor(request->buf, msg, list_len, notes);
    if (!at) {
        st = tenrec_fail(err, TENREC_EUNSUPPORTED, "a tensor's device has no name on the wire");
        goto err_out;
    }
    st = check_encoded(p, msg, (size_t)(at - request->buf) - FRAME_HEAD, list_len, err);
    if (st)
        goto err_out;
    at = put_fixed_frames(at, msg);
    put_le64(list, list_len);
    request->msg = msg;
    request->frames.iov[0] = (struct iovec){ request->buf, (size_t)(at - request->buf) };
    request->frames.iov[1] = (struct iovec){ msg->payload, (size_t)msg->payload_len };
    request->frames.iov[2] = (struct iovec){ list, FRAME_HEAD + list_len };
    request->frames.n = 3;
    *ret = request;
    return TENREC_OK;

err_out:
    send_request_free(p, request);
    return st;
}
