/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c - frames of the wire as the agent itself writes them. */
#include "frame.h"
#include "channel/channel.h"
#include "fuzz.h"
#include "wire/brief.h"
#include "wire/descriptor.h"
#include "wire/handshake/identity.h"
#include "wire/tensorlist.h"

#define TENSORS_MAX 8
#define NOTE_LEN 9

unsigned char frame_memory[FRAME_MEMORY];

static unsigned char *frames_room(struct frames *f, size_t len)
{
    fuzz_expect(sizeof f->bytes - f->len >= FRAME_HEAD + len);
    return f->bytes + f->len + FRAME_HEAD;
}

/* The object of `len` bytes that was written to frames_room is a frame. */
static void frames_end(struct frames *f, size_t len)
{
    put_le64(f->bytes + f->len, len);
    f->len += FRAME_HEAD + len;
}

void frames_add_object(struct frames *f, const void *object, size_t len)
{
    unsigned char *at = frames_room(f, len);

    if (len)
        memcpy(at, object, len);
    frames_end(f, len);
}

void frames_add_bytes(struct frames *f, uint64_t len)
{
    frames_add_object(f, frame_memory, (size_t)len);
}

void frames_add_hello(struct frames *f, bool requested, uint64_t id)
{
    unsigned char *at = frames_room(f, HELLO_MAX(16));

    if (requested)
        frames_end(f, hello_write_requested(at, HELLO_MAX(0), id));
    else
        frames_end(f, hello_write_spontaneous(at, HELLO_MAX(16), nop_text("fuzz\n")));
}

/* Those parts of the agent's own offer that the claim names. */
struct offer_part {
    struct wire_transport transports[TRANSPORTS_MAX];
    struct wire_channel channels[CHANNELS_MAX];
    char identity[IDENTITY_MAX];
    struct wire_offer offer;
};

static void offer_part(struct offer_part *part, const struct agent *a,
                       const struct frame_claim *claim)
{
    const struct identity identity = { .version = claim->version,
                                       .rank = claim->rank,
                                       .incarnation = claim->life,
                                       .capabilities = claim->capabilities };
    uint32_t n_transports = 0, n_channels = 0;

    *part->identity = '\0';
    if (claim->version)
        identity_write(part->identity, &identity);
    for (uint32_t i = 0; i < a->ep.offer.n_transports; i++)
        if (claim->transports >> i & 1)
            part->transports[n_transports++] = a->ep.offer.transports[i];
    for (uint32_t i = 0; i < a->ep.offer.n_channels; i++)
        if (claim->channels >> i & 1)
            part->channels[n_channels++] = a->ep.offer.channels[i];
    part->offer = (struct wire_offer){ part->transports, part->channels, n_transports, n_channels,
                                       claim->version ? part->identity : NULL };
}

void frames_add_brochure(struct frames *f, const struct agent *a, const struct frame_claim *claim)
{
    struct offer_part part;

    offer_part(&part, a, claim);
    frames_end(f, brochure_write(frames_room(f, 4096), 4096, &part.offer));
}

/* The next frame of what the agent wrote; NULL: it is incomplete. */
static const unsigned char *next_frame(const unsigned char **at, size_t *left, size_t *ret_len)
{
    const unsigned char *body = *at + FRAME_HEAD;
    uint64_t len;

    if (*left < FRAME_HEAD)
        return NULL;
    len = get_le64(*at);
    if (len > *left - FRAME_HEAD)
        return NULL;
    *at = body + len;
    *left -= FRAME_HEAD + (size_t)len;
    *ret_len = (size_t)len;
    return body;
}

bool frames_add_answer(struct frames *f, const struct agent *a, const struct frame_claim *claim,
                       const unsigned char *wrote, size_t left)
{
    uint64_t channel_id[WIRE_MAX_CHANNELS * CHANNEL_CONNECTIONS];
    const struct wire_ids ids = { true, 7, 8, channel_id };
    struct wire_selection s;
    struct offer_part part;
    struct hello hello;
    struct brochure b;
    const unsigned char *frame;
    tenrec_error err;
    size_t len;

    for (size_t i = 0; i < sizeof channel_id / sizeof channel_id[0]; i++)
        channel_id[i] = i + 9;
    frame = next_frame(&wrote, &left, &len);
    if (!frame)
        return false;
    fuzz_expect(hello_read(frame, len, &hello, &err) == TENREC_OK);
    frame = next_frame(&wrote, &left, &len);
    if (hello.kind != HELLO_SPONTANEOUS || !frame)
        return false;
    fuzz_expect(brochure_read(frame, len, &b, &err) == TENREC_OK);
    offer_part(&part, a, claim);
    if (brochure_select(&b, &part.offer, &s, &err))
        return false;
    s.n_pairs = s.n_pairs > 0;
    for (uint32_t i = 0; i < WIRE_MAX_CHANNELS; i++)
        s.channel_used[i] = s.n_pairs && s.pairs[0].channel == i;
    frames_end(
        f, answer_write(frames_room(f, 4096), 4096, &part.offer, &s, &ids, claim->version != 0));
    return true;
}

/* ---- messages ---- */

static void describe_tensors(struct tenrec_tensor_desc *t, const struct frame_message *m)
{
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        t[i] = (struct tenrec_tensor_desc){ .bytes = m->tensor_len };
        t[i].dtype = (struct tenrec_dtype){ TENREC_DTYPE_UINT, 8, 1 };
        t[i].ndim = 1;
        t[i].shape[0] = (int64_t)m->tensor_len;
        t[i].strides[0] = 1;
        t[i].device = m->source.kind ? m->source : (struct tenrec_device){ TENREC_CPU, 0 };
        t[i].target = m->target.kind ? m->target : (struct tenrec_device){ TENREC_CPU, 0 };
    }
}

/* The descriptor of a tensor by channel_host. */
static void note_tensor(struct descriptor_note *note, const struct frame_message *m)
{
    *note = (struct descriptor_note){ .len = NOTE_LEN };
    switch (m->way) {
    case WAY_PULL:
    case WAY_PULL_BAD:
        note->bytes[0] = 1;
        put_le64(note->bytes + 1, m->way == WAY_PULL ? (uintptr_t)frame_memory : 8);
        break;
    case WAY_LANES:
        note->bytes[0] = 2;
        put_le64(note->bytes + 1, m->tensor_len > 1000 ? 1000 : m->tensor_len);
        break;
    case WAY_MAPPED:
    case WAY_PASSED:
        note->bytes[0] = 3;
        note->bytes[1 + TENREC_SHARE_RECORD] = m->way == WAY_PASSED;
        note->bytes[1 + TENREC_SHARE_RECORD + 1] = m->packet;
        note->len = 1 + TENREC_SHARE_RECORD + 1 + 8;
        break;
    case WAY_PLAIN:
    case WAYS:
        note->len = 0;
    }
}

/* The list of tensors; returns its length. */
static size_t write_list(unsigned char *to, size_t cap, const struct tenrec_tensor_desc *t,
                         const struct frame_message *m)
{
    tenrec_error err;
    size_t len = 0;

    if (m->shortlist)
        fuzz_expect(shortlist_write(to, t, m->n_tensors, sizeof *t, &len, &err) == TENREC_OK);
    else
        fuzz_expect(tensorlist_write(to, cap, t, m->n_tensors, sizeof *t, true, &len, &err) ==
                    TENREC_OK);
    if (m->wrong_list)
        to[len / 2]++;
    return len;
}

/* Takes the second of two equal devices out of each tensor of a descriptor. Returns its
 * new length. */
static size_t take_targets_out(unsigned char *at, size_t len)
{
    static const unsigned char cpu[] = { 0xb9, 2, 0xbd, 3, 'c', 'p', 'u', 0 };
    const size_t n = sizeof cpu;

    for (size_t i = 0; i + 2 * n <= len; i++) {
        if (memcmp(at + i, cpu, n) != 0 || memcmp(at + i + n, cpu, n) != 0)
            continue;
        at[i + n] = 0xbe; /* none */
        memmove(at + i + n + 1, at + i + 2 * n, len - i - 2 * n);
        len -= n - 1;
    }
    return len;
}

static void add_general(struct frames *f, const struct frame_message *m)
{
    struct tenrec_tensor_desc t[TENSORS_MAX] = { 0 };
    struct descriptor_note notes[TENSORS_MAX];
    unsigned char list[TENSORLIST_MAX(TENSORS_MAX)], type[4], id[8];
    uint64_t len[DESCRIPTOR_AGENT_PAYLOADS] = { 4, 8, m->payload_len, 0 };
    unsigned char *at;
    size_t n;

    describe_tensors(t, m);
    for (uint32_t i = 0; i < m->n_tensors; i++)
        if (m->notes)
            notes[i] = m->notes[i];
        else
            note_tensor(&notes[i], m);
    len[3] = write_list(list, sizeof list, t, m);
    at = frames_room(f, DESCRIPTOR_MAX(TENSORS_MAX));
    n = descriptor_write(at, DESCRIPTOR_MAX(TENSORS_MAX), len, t, m->n_tensors, sizeof t[0], notes);
    frames_end(f, m->targetless ? take_targets_out(at, n) : n);
    memcpy(type, &m->type, 4);
    put_le64(id, (uint64_t)m->id);
    frames_add_object(f, type, 4);
    frames_add_object(f, id, 8);
    frames_add_bytes(f, m->payload_len);
    frames_add_object(f, list, (size_t)len[3]);
}

void frames_add_message(struct frames *f, const struct pipe *p, const struct frame_message *m)
{
    if (m->n_tensors == 0 && !m->longwinded && m->shortlist && m->payload_len <= BRIEF_BODY_MAX &&
        p->terms.capabilities & IDENTITY_BRIEF_MESSAGES) {
        fuzz_expect(sizeof f->bytes - f->len >= m->payload_len + BRIEF_HEAD);
        f->len += brief_write(f->bytes + f->len, m->type, m->id, frame_memory, m->payload_len);
        return;
    }
    if (m->n_tensors == 0 && !m->longwinded) {
        fuzz_expect(sizeof f->bytes - f->len >= m->payload_len + PLAIN_FRAMES_MAX);
        f->len += plain_write(f->bytes + f->len, m->type, m->id, frame_memory, m->payload_len);
        return;
    }
    add_general(f, m);
}

void frames_spoil(struct frames *f, const struct fuzz_step *s)
{
    for (size_t i = 0; i + 3 <= s->len && f->len; i += 3) {
        const size_t place = s->data[i] | (size_t)(s->data[i + 1] & 0x7f) << 8;

        if (s->data[i + 1] & 0x80)
            f->bytes[f->len - 1 - place % f->len] += s->data[i + 2];
        else
            f->bytes[place % f->len] += s->data[i + 2];
    }
}
