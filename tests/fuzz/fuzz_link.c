/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_link.c - an agent with devices, and peers that say what they like on the connection of
 * a link and in the notes beside its tensors.
 *
 * The input: a byte of options, then steps (step.h). The driver is fake_driver.c, the rest as
 * in fuzz_agent.c. In the end nothing of the driver's is left. */
#include "agent/agent.h"
#include "cuda/link/link_parts.h"
#include "fake_driver.h"
#include "fake_host.h"
#include "fake_wire.h"
#include "frame.h"
#include "fuzz.h"
#include "peer_step.h"
#include "transport/transport_local.h"

#include "../support/message_hooks.h"
#include "core/backend/backend.h"
#include <poll.h>
#include <sys/random.h>

#define STEPS_MAX 200
#define ROUNDS 20
#define TENSORS 3
#define HELLO_LEN (4 + PROCESS_TOKEN + BOOT_ID)
#define TOKEN 7 /* each byte of this process's */

static struct fake_host host;
static struct frames frames; /* too large for the stack */
static unsigned sent, told;
static const uint32_t sizes[] = { 1, 9, 200, 4096, FAKE_FOREIGN, FAKE_FOREIGN + 1, 0, 40000 };

/* ---- instead of the C library's ---- */

ssize_t __real_getrandom(void *ret, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *ret, size_t len, unsigned flags);
int __real_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);

ssize_t __wrap_getrandom(void *ret, size_t len, unsigned flags)
{
    if (len != PROCESS_TOKEN)
        return __real_getrandom(ret, len, flags);
    memset(ret, TOKEN, len);
    return (ssize_t)len;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
    if (n)
        return __real_poll(fds, n, ms);
    fake_wire.now_ns += (uint64_t)ms * 1000000u;
    return 0;
}

/* ---- tensors of the host ---- */

static void tensors_drop(void *arg, struct tenrec_msg *msg)
{
    (void)arg;
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);
        const struct tenrec_stream s = { t->device, t->stream };

        if (t->device.kind == TENREC_CUDA && t->data)
            cuda_device_ops.memory_drop(&s, t->data);
        else
            free(t->data);
    }
}

static tenrec_status tensor_place(struct tenrec_tensor_desc *t, tenrec_error *err)
{
    struct tenrec_stream s = { t->target, 0 };
    tenrec_status st;

    t->device = t->target;
    if (t->target.kind != TENREC_CUDA) {
        t->data = malloc(t->bytes + 1);
        return TENREC_OK;
    }
    st = cuda_device_ops.stream_get(t->target.index, &s.stream, err);
    if (!st)
        st = cuda_device_ops.memory_new(&s, t->bytes ? t->bytes : 1, &t->data, err);
    t->stream = s.stream;
    return st;
}

static tenrec_status host_place(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg,
                                tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    (void)self, (void)from;
    if (host.mood & MOOD_NO_PLACE)
        return tenrec_fail(err, TENREC_ETOOBIG, "the host wants no tensors");
    for (uint32_t i = 0; i < msg->n_tensors; i++)
        tenrec_msg_tensor(msg, i)->data = NULL;
    message_on_release(msg, tensors_drop, NULL);
    for (uint32_t i = 0; i < msg->n_tensors && !st; i++)
        st = tensor_place(tenrec_msg_tensor(msg, i), err);
    return st;
}

static void request_release(void *arg, struct tenrec_msg *response)
{
    struct tenrec_msg *request = arg;

    (void)response;
    request->release(request);
}

static void answer_done(void *arg, const tenrec_error *err)
{
    (void)arg, (void)err;
    told++;
    fuzz_expect(told <= sent);
}

/* Bits 0-1: 0 the host, else a device. */
static struct tenrec_device device_of(uint32_t bits)
{
    return bits % 4 ? (struct tenrec_device){ TENREC_CUDA, (int32_t)(bits % 4) - 1 }
                    : (struct tenrec_device){ TENREC_CPU, 0 };
}

/* The tensors of a kept request go back, to where bits 0-1 say; those of the host, too. */
static void host_answers(struct fake_host *h, const struct fuzz_step *s)
{
    struct tenrec_msg *request, *response;

    if (!h->n_kept)
        return;
    request = h->kept[--h->n_kept];
    response = message_new(1, request->n_tensors);
    fuzz_expect(response != NULL);
    memset(response->payload, 0, 1);
    response->type = TENREC_MSG_RET;
    for (uint32_t i = 0; i < request->n_tensors; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(response, i);

        *t = *tenrec_msg_tensor(request, i);
        t->target = device_of(step_bits(s, 0, 2));
    }
    response->id = request->id;
    response->route = request->route;
    message_on_release(response, request_release, request);
    sent++;
    h->agent.ops->send(&h->agent, TENREC_ANONYMOUS, response,
                       (struct tenrec_done){ answer_done, NULL });
}

/* ---- what the peer says ---- */

/* The number of a tensor that the agent lends: bit 31 of those of all links, else bits 3-6. */
static uint64_t number_of(struct fake_host *h, const struct fuzz_step *s)
{
    const struct lent *l = fake_host_agent(h)->cuda.lent;

    return s->arg >> 31 && l ? l->number : step_bits(s, 3, 4);
}

/* Bits 3: with the token of this process, 4: devices, 5: of another machine, 6-8: no such way. */
static void say_hello(const struct fuzz_step *s)
{
    unsigned char body[HELLO_LEN + FAKE_DEVICES * 16] = { SAID_HELLO, LINK_VERSION };
    const unsigned n = step_bits(s, 4, 1) ? FAKE_DEVICES : 0;
    char boot[LOCALITY_PART_MAX];

    body[2] = (unsigned char)(~step_bits(s, 6, 3) << 1 & 14);
    body[3] = (unsigned char)n;
    memset(body + 4, step_bits(s, 3, 1) ? TOKEN : 1, PROCESS_TOKEN);
    if (!step_bits(s, 5, 1) && locality_boot_id(boot))
        memcpy(body + 4 + PROCESS_TOKEN, boot, strnlen(boot, BOOT_ID));
    for (unsigned i = 0; i < n; i++)
        memset(body + HELLO_LEN + (size_t)i * 16, (int)i + 1, 16);
    frames_add_object(&frames, body, HELLO_LEN + (size_t)n * 16);
}

/* Bits 3-6 number, 7-9 length, 10-17 offset in hundreds. */
static void say_piece(struct fake_host *h, const struct fuzz_step *s)
{
    const uint32_t len = sizes[step_bits(s, 7, 3)];
    unsigned char *at = frames.bytes + frames.len + FRAME_HEAD;

    frames_add_bytes(&frames, PIECE_HEAD + len);
    at[0] = SAID_PIECE;
    put_le64(at + 1, number_of(h, s));
    put_le64(at + 9, step_bits(s, 10, 8) * 100u);
}

/* Bits 0-2 what, 18-23 bytes granted. */
static void peer_says(struct fake_host *h, const struct fuzz_step *s)
{
    struct pipe *p = peer_pipe(h, s->who);
    struct fake_conn *c = p && p->devices.role ? peer_conn(p, p->devices.role) : NULL;
    unsigned char body[9 + 20] = { (unsigned char)step_bits(s, 0, 3) };

    if (!c)
        return;
    frames.len = 0;
    put_le64(body + 1, number_of(h, s));
    switch (step_bits(s, 0, 3)) {
    case SAID_HELLO:
        say_hello(s);
        break;
    case SAID_PIECE:
        say_piece(h, s);
        break;
    case SAID_FAILED:
        frames_add_object(&frames, body, sizeof body);
        break;
    default:
        frames_add_object(&frames, body, 9);
    }
    frames_spoil(&frames, s);
    fake_conn_write(c, frames.bytes, frames.len, step_bits(s, 18, 6));
}

/* Beside tensor `i`: bits 0-1 way, 3-6 number of the first, 7 unknown handles, 8-9
 * which handle, 10-17 offset in hundreds. */
static void note_write(struct fake_host *h, const struct fuzz_step *s, uint32_t i,
                       struct descriptor_note *note)
{
    const enum method way = (enum method)(1 + step_bits(s, 0, 2) % 3);
    const unsigned char handle =
        (unsigned char)(step_bits(s, 8, 2) + (step_bits(s, 7, 1) ? FAKE_HANDLES : 0));

    *note = (struct descriptor_note){ .len = way == METHOD_IPC ? NOTE_IPC : NOTE_SHORT };
    note->bytes[0] = (unsigned char)(NOTE_KIND + way);
    put_le64(note->bytes + 1, number_of(h, s) + i);
    if (way != METHOD_IPC)
        return;
    put_le64(note->bytes + 9, step_bits(s, 10, 8) * 100u);
    put_le64(note->bytes + 17, handle);
    put_le64(note->bytes + 25, number_of(h, s) / 8); /* the life of that address */
    note->bytes[33] = handle;
    note->bytes[97] = handle;
}

/* Bits 18-19 tensors, 20-22 their size, 23-24 source, 25-26 target, 27 an answer, 28 longwinded. */
static void peer_sends_tensors(struct fake_host *h, const struct fuzz_step *s)
{
    struct descriptor_note notes[TENSORS];
    const struct frame_message m = { .type = step_bits(s, 27, 1) ? TENREC_MSG_RET : TENREC_MSG_CALL,
                                     .id = h->next_id,
                                     .n_tensors = 1 + step_bits(s, 18, 2) % TENSORS,
                                     .tensor_len = sizes[step_bits(s, 20, 3)],
                                     .source = device_of(step_bits(s, 23, 2)),
                                     .target = device_of(step_bits(s, 25, 2)),
                                     .shortlist = !step_bits(s, 28, 1),
                                     .notes = notes };
    struct pipe *p = peer_pipe(h, s->who);
    struct fake_conn *c = p ? peer_conn(p, CONN_DESCRIPTOR) : NULL;

    if (!c)
        return;
    for (uint32_t i = 0; i < m.n_tensors; i++)
        note_write(h, s, i, &notes[i]);
    frames.len = 0;
    frames_add_message(&frames, p, &m);
    frames_spoil(&frames, s);
    fake_conn_write(c, frames.bytes, frames.len, 0);
}

/* ---- the rest ---- */

static void host_runs(struct fake_host *h, const struct fuzz_step *s)
{
    fake_host_run(h, 1 + s->who % ROUNDS);
}

static void host_moods(struct fake_host *h, const struct fuzz_step *s)
{
    h->mood = s->arg & (MOOD_REFUSES | MOOD_NO_PLACE);
    if (!(h->mood & MOOD_REFUSES))
        h->agent.ops->resume(&h->agent);
}

static void time_passes(struct fake_host *h, const struct fuzz_step *s)
{
    fake_host_wait(h, step_bits(s, 0, 12));
    fake_host_run(h, ROUNDS);
}

static void driver_fails(struct fake_host *h, const struct fuzz_step *s)
{
    (void)h;
    fake_driver.fails = step_bits(s, 0, 5);
}

static void (*const steps_table[])(struct fake_host *h, const struct fuzz_step *s) = {
    peer_opens_pipe, peer_says,    peer_sends_tensors, host_runs,  host_answers, host_moods,
    time_passes,     driver_fails, peer_cuts,          peer_reads, peer_writes,
};

static void step_run(struct fuzz_steps *steps)
{
    struct fuzz_step s;

    if (!step_next(steps, &s))
        return;
    steps_table[s.op % (sizeof steps_table / sizeof steps_table[0])](&host, &s);
    fake_host_run(&host, 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct fuzz_steps steps = { data + 1, len - 1 };

    if (len == 0)
        return 0;
    fake_wire_init();
    fake_driver.fails = sent = told = 0;
    fake_host_start(&host, data[0] | FAKE_HAS_DEVICES);
    host.host.place = host_place;
    for (unsigned i = 0; i < STEPS_MAX && steps.left >= STEP_HEAD; i++)
        step_run(&steps);
    fake_driver.fails = 0;
    fake_host_run(&host, ROUNDS);
    fake_host_finish(&host);
    fake_wire_finish();
    fuzz_expect(told == sent && fake_driver.live == 0);
    return 0;
}
