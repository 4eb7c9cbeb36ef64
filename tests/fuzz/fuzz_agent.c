/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_agent.c - a whole tensorpipe agent between a host and peers of the fuzzer's.
 *
 * The input: a byte of options, then steps (step.h) of the peers, of the host and of time,
 * in any order. Peers send frames that are right by default, so that mutations reach what
 * lies behind a handshake. When the list ends the agent shuts down: it must have reported
 * each send once and freed all. */
#include "amplification.h"
#include "fake_host.h"
#include "fake_wire.h"
#include "frame.h"
#include "fuzz.h"
#include "peer_step.h"
#include "pipe/pipe.h"

#define STEPS_MAX 200
#define ROUNDS 20
#define STEP_OPS 32

static struct fake_host host;

static struct fake_message message_of(const struct fuzz_step *s)
{
    static const uint32_t sizes[] = { 0, 10, 200, 600, 2000, 5000, 17000, 40000 };
    static const int32_t types[] = { TENREC_MSG_CALL, TENREC_MSG_ONE_WAY_CALL, TENREC_MSG_CANCEL,
                                     TENREC_MSG_VIEW };

    return (struct fake_message){ .type = types[step_bits(s, 0, 2)],
                                  .payload_len = sizes[step_bits(s, 2, 3)],
                                  .n_tensors = step_bits(s, 5, 2),
                                  .tensor_len = sizes[step_bits(s, 7, 3)],
                                  .flags = step_bits(s, 10, 1) ? TENREC_MSG_CONTROL : 0 };
}

static void host_sends(struct fake_host *h, const struct fuzz_step *s)
{
    struct fake_message m = message_of(s);

    m.lag_ms = step_bits(s, 16, 2) * 500;
    for (uint32_t i = 0; i <= step_bits(s, 12, 4); i++)
        fake_host_send(h, (tenrec_peer)(s->who % (FAKE_MEMBERS + 1)), &m);
}

static void host_answers(struct fake_host *h, const struct fuzz_step *s)
{
    struct fake_message m = message_of(s);

    m.type = TENREC_MSG_RET;
    fake_host_answer(h, s->who, &m);
}

static void host_moods(struct fake_host *h, const struct fuzz_step *s)
{
    h->mood = s->arg;
    if (!(h->mood & MOOD_REFUSES))
        h->agent.ops->resume(&h->agent);
}

static void host_runs(struct fake_host *h, const struct fuzz_step *s)
{
    fake_host_run(h, 1 + s->who % ROUNDS);
}

static void step_next_run(void *arg);

static void host_polls(struct fake_host *h, const struct fuzz_step *s)
{
    fake_host_poll(h, (tenrec_peer)(s->who % FAKE_MEMBERS), 1 + step_bits(s, 0, 4), step_next_run,
                   h);
}

static void ignore(void *arg, const char *key, const char *value)
{
    (void)arg;
    fuzz_touch(key, strlen(key) + 1);
    fuzz_touch(value, strlen(value) + 1);
}

static void host_asks(struct fake_host *h, const struct fuzz_step *s)
{
    const struct tenrec_member member = { .size = sizeof member,
                                          .id = 3,
                                          .incarnation = FAKE_LIFE(3) + step_bits(s, 4, 2),
                                          .name = "joined",
                                          .address = FAKE_NEAR "://joined" };
    const tenrec_peer who = (tenrec_peer)(s->who % FAKE_MEMBERS);
    tenrec_error err;

    switch (step_bits(s, 0, 3)) {
    case 0:
        h->agent.ops->debug_info(&h->agent, ignore, NULL);
        break;
    case 1:
        h->agent.ops->disconnect(&h->agent, who, &err);
        break;
    case 2:
        h->agent.ops->member_left(&h->agent, who);
        break;
    case 3:
        h->agent.ops->member_joined(&h->agent, &member);
        break;
    case 4:
        h->agent.ops->drain(&h->agent, 1, &err);
        break;
    default:
        h->agent.ops->maps(&h->agent, who, (struct tenrec_route){ 0, step_bits(s, 4, 2) });
    }
}

static void time_passes(struct fake_host *h, const struct fuzz_step *s)
{
    fake_host_wait(h, step_bits(s, 0, 16));
    fake_host_run(h, ROUNDS);
}

/* The peer changes a word of memory that the agent reads when it likes. */
static void memory_changes(struct fake_host *h, const struct fuzz_step *s)
{
    (void)h;
    frame_memory[s->arg % sizeof frame_memory] ^= s->who;
}

typedef void step_fn(struct fake_host *h, const struct fuzz_step *s);
static step_fn *const steps_table[] = {
    peer_opens_pipe, peer_sends,   host_runs,   host_sends,     peer_answers,
    peer_controls,   peer_calls,   peer_greets, peer_offers,    peer_writes,
    peer_cuts,       host_answers, host_moods,  host_polls,     host_asks,
    time_passes,     peer_reads,   peer_passes, memory_changes,
};

static struct fuzz_steps steps;
static unsigned n_steps, depth;

static void step_next_run(void *arg)
{
    struct fake_host *h = arg;
    struct fuzz_step s;
    step_fn *run;

    /* A poll within a poll would be on the same thread. */
    if (n_steps++ >= STEPS_MAX || !step_next(&steps, &s))
        return;
    /* Numbers that stand for nothing yet are left for steps to come. */
    run = s.op % STEP_OPS < sizeof steps_table / sizeof steps_table[0]
              ? steps_table[s.op % STEP_OPS]
              : host_runs;
    if (depth && run == host_polls)
        return;
    depth++;
    run(h, &s);
    depth--;
}

/* Beside what each connection has, memory is made for bytes that a peer wrote or the host sent: a
 * step of some bytes may be a frame of many. */
static void expect_little_made(void)
{
    const size_t len = (size_t)(fake_wire.written + host.sent_bytes);
    const struct fuzz_bound bytes = { 4, ((size_t)fake_wire.n * 80 + 512) << 10 };

    fuzz_expect_made(len, bytes, (struct fuzz_bound){ 0, 0 });
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len == 0)
        return 0;
    fuzz_measure();
    fake_wire_init();
    memset(frame_memory, 5, sizeof frame_memory);
    fake_host_start(&host, data[0]);
    steps = (struct fuzz_steps){ data + 1, len - 1 };
    n_steps = depth = 0;
    while (n_steps < STEPS_MAX && steps.left >= STEP_HEAD) {
        step_next_run(&host);
        fake_host_run(&host, 2);
    }
    fake_host_run(&host, ROUNDS);
    fake_host_finish(&host);
    fake_wire_finish();
    expect_little_made();
    return 0;
}
