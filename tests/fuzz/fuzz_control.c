/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_control.c - control messages of members: gathers, views, references, answers, errors.
 *
 * Input: a byte of options, then steps: what the program of a worker does (fake_worker.h), or a
 * message of a member, whose payload is right by default. */
#include "amplification.h"
#include "fake_worker.h"

#include "core/base/clock.h"
#include "core/tensor/tensor.h"
#include "rpc/call/call.h"
#include "rpc/future/future.h"
#include "rpc/gather/gather.h"
#include "rpc/gather/gather_set.h"
#include "rpc/monitor/monitor_inside.h"
#include "rpc/rref/rref.h"
#include "rpc/rref/rref_context.h"
#include "rpc/value/codec.h"
#include "rpc/worker/worker.h"

#include <stdio.h>

enum { NUMBERS_MAX = 8, STEPS_MAX = 100 };
enum { OPTION_DYNAMIC = 1 };

/* ---- messages of members ---- */

/* Numbers of references, as this worker and the others make them, and others. */
static int64_t number_take(struct fuzz_input *in)
{
    const uint8_t b = (uint8_t)fuzz_take(in, 1);

    if (b < 0x40)
        return b;
    if (b < 0xc0)
        return ((int64_t)1 << RREF_SESSION_SHIFT) + (b & 0x3f);
    return b < 0xf0 ? (int64_t)fuzz_take(in, 8) : INT64_MAX >> (b & 15);
}

static struct tenrec_msg *message_of_numbers(struct fuzz_input *in, int32_t type)
{
    const size_t n = fuzz_take(in, 1) % (NUMBERS_MAX + 1);
    int64_t number[NUMBERS_MAX];
    struct tenrec_msg *msg;

    for (size_t i = 0; i < n; i++)
        number[i] = number_take(in);
    return rref_numbers_write(type, number, n, &msg, NULL) == TENREC_OK ? msg : NULL;
}

static struct tenrec_msg *message_of_gather(struct fuzz_input *in, int32_t type)
{
    static const char *const usual[] = { "worker0\nworker1\nworker2\n",
                                         "worker0\nworker2\n",
                                         "worker0#28\nworker1#29\nworker2#2a\n",
                                         "worker0#28\nworker2#2a\n",
                                         "*",
                                         "*00000000000000010000000000000002" };
    enum { N_USUAL = sizeof usual / sizeof usual[0] };
    const uint8_t which = (uint8_t)fuzz_take(in, 1);
    struct fuzz_input text = { NULL, 0 };
    char key[256];
    struct tenrec_value item[4], array = tenrec_value_array(item, 4);
    struct tenrec_msg *msg;

    if (which >= N_USUAL)
        text = fuzz_take_bytes(in);
    snprintf(key, sizeof key, "%.*s", (int)text.len, text.at ? (const char *)text.at : "");
    item[0] = tenrec_value_text(which < N_USUAL ? usual[which] : key);
    item[1] = tenrec_value_int(number_take(in));
    item[2] = tenrec_value_int(number_take(in));
    item[3] = tenrec_value_int(which);
    return codec_write_value(&array, type, &msg, NULL) == TENREC_OK ? msg : NULL;
}

static struct tenrec_msg *message_of_error(struct fuzz_input *in, int32_t type)
{
    const unsigned code = (unsigned)fuzz_take(in, 1);
    const struct fuzz_input text = fuzz_take_bytes(in);
    struct tenrec_msg *msg;
    tenrec_error why;

    tenrec_fail(&why, (tenrec_status)(code >> 1), "%.*s", (int)text.len, (const char *)text.at);
    if (codec_write_error(&why, code & 1, &msg, NULL) != TENREC_OK)
        return NULL;
    msg->type = type;
    return msg;
}

static struct tenrec_msg *message_of_bytes(struct fuzz_input *in, int32_t type)
{
    const struct fuzz_input bytes = fuzz_take_bytes(in);
    struct tenrec_msg *msg = rpc_message_new(bytes.len, 0);

    if (!msg)
        return NULL;
    msg->type = type;
    if (bytes.len)
        memcpy(msg->payload, bytes.at, bytes.len);
    return msg;
}

static void message_spoil(struct tenrec_msg *msg, struct fuzz_input *in)
{
    const size_t at = fuzz_take(in, 1);

    if (msg->payload_len)
        ((unsigned char *)msg->payload)[at % msg->payload_len] ^= (unsigned char)fuzz_take(in, 1);
}

/* A step is a message that the worker sends: it may end as many waits as the program has begun. */
static void deliver(tenrec_peer from, struct tenrec_msg *msg)
{
    const size_t len = (size_t)msg->payload_len, n_messages = fake.n_messages;

    fuzz_measure();
    worker_deliver(&fake.worker, from, msg);
    fuzz_made.steps = fake.n_messages - n_messages;
    fuzz_expect_made(len, (struct fuzz_bound){ 100, 32768 }, (struct fuzz_bound){ 1, 100 });
}

/* A byte: the type of the message; another: its sender (two bits), what its payload is (two),
 * whether that is spoilt; a third: its id, of a request that was sent or any. */
static void message_arrives(struct fuzz_input *in)
{
    static const int32_t types[] = {
        TENREC_MSG_GATHER,
        TENREC_MSG_GATHER_RET,
        TENREC_MSG_VIEW,
        TENREC_MSG_VIEW_RET,
        TENREC_MSG_RREF_FETCH_CALL,
        TENREC_MSG_RREF_FETCH_RET,
        TENREC_MSG_RREF_USER_DELETE,
        TENREC_MSG_RREF_FORK_REQUEST,
        TENREC_MSG_RREF_CHILD_ACCEPT,
        TENREC_MSG_RREF_ACK,
        TENREC_MSG_EXCEPTION,
        TENREC_MSG_RET,
        TENREC_MSG_REMOTE_RET,
        TENREC_MSG_CANCEL,
        TENREC_MSG_REMOTE_CALL,
        TENREC_MSG_CALL,
        TENREC_MSG_BACKWARD_AUTOGRAD_REQ,
    };
    static struct tenrec_msg *(*const payloads[])(struct fuzz_input *, int32_t) = {
        message_of_numbers, message_of_gather, message_of_error, message_of_bytes
    };
    const int32_t type = types[fuzz_take(in, 1) % (sizeof types / sizeof types[0])];
    const uint8_t how = (uint8_t)fuzz_take(in, 1), id = (uint8_t)fuzz_take(in, 1);
    struct tenrec_msg *msg = payloads[how >> 2 & 3](in, type);

    if (!msg)
        return;
    if (how & 0x10)
        message_spoil(msg, in);
    msg->id = id < 0x80 ? fake.sent_id[id % FAKE_KEPT] : id;
    msg->route = (struct tenrec_route){ how & 3, 1 };
    deliver((how & 3) == 3 ? TENREC_ANONYMOUS : (tenrec_peer)(how & 3), msg);
}

/* ---- what the program does ---- */

static void program_expect(tenrec_status st)
{
    fuzz_expect(st == TENREC_OK);
}

static void keep_future(struct tenrec_future *f)
{
    fake.future[fake.n_futures++] = f;
}

static void program_calls(void)
{
    struct tenrec_future *f;

    if (fake.n_futures < FAKE_KEPT &&
        tenrec_rpc_async(&fake.worker, "worker1", "f", NULL, 0, NULL, &f, NULL) == TENREC_OK)
        keep_future(f);
}

static void program_remotes(void)
{
    if (fake.n_refs < FAKE_KEPT && tenrec_remote(&fake.worker, "worker1", "f", NULL, 0, NULL,
                                                 &fake.ref[fake.n_refs], NULL) == TENREC_OK)
        fake.n_refs++;
}

static void program_owns(void)
{
    const struct tenrec_value one = tenrec_value_int(1);

    if (fake.n_refs < FAKE_KEPT &&
        tenrec_rref_new(&fake.worker, &one, &fake.ref[fake.n_refs], NULL) == TENREC_OK)
        fake.n_refs++;
}

/* A call with the latest reference as its argument: a fork is under way. */
static void program_passes(void)
{
    struct tenrec_future *f;
    struct tenrec_value arg;

    if (!fake.n_refs || fake.n_futures == FAKE_KEPT)
        return;
    arg = tenrec_value_rref(fake.ref[fake.n_refs - 1]);
    if (tenrec_rpc_async(&fake.worker, "worker2", "f", &arg, 1, NULL, &f, NULL) == TENREC_OK)
        keep_future(f);
}

static void program_drops(void)
{
    if (fake.n_refs)
        tenrec_rref_drop(fake.ref[--fake.n_refs]);
}

/* This worker comes to the next gather that it leads. */
static void program_gathers(void)
{
    struct tenrec_value one = tenrec_value_int(1);
    const struct tenrec_value list = tenrec_value_array(&one, 1);
    struct gather_part part = { .id = 0 };
    struct gather_set *set;
    struct participants *s;
    struct tenrec_future *f;

    if (fake.n_futures == FAKE_KEPT)
        return;
    program_expect(participants_of_names(&fake.worker.peers, NULL, 0, &s, NULL));
    fuzz_expect((set = gather_set_get(&gathers_of(&fake.worker)->sets, s)) != NULL);
    program_expect(tenrec_future_new(&f, NULL));
    program_expect(tenrec_value_copy(&list, &part.value, NULL));
    part.future = tenrec_future_share(f);
    if (gather_join(&fake.worker, s, set->next++, fake.now_ns + 1000000, &part, NULL) ==
        TENREC_OK) {
        keep_future(f);
    } else {
        tenrec_value_drop(part.value);
        tenrec_future_drop(f);
        tenrec_future_drop(f);
    }
    participants_drop(s);
}

static void peer_is_lost(tenrec_peer peer)
{
    tenrec_error why;

    tenrec_fail(&why, TENREC_EPEER_LOST, "connection broke");
    call_fail_peer(&fake.worker, peer, &why);
    gather_lost(&fake.worker, peer, &why);
    rrefs_lost(&fake.worker, peer, false, &why);
}

static void time_passes(struct tenrec_worker *w, uint64_t ms)
{
    struct rref_acts acts = { 0 };

    fake.now_ns += ms * 1000000;
    call_expire(w);
    gather_expire(w);
    rref_expire(rref_context_of(w), fake.now_ns, &acts);
    rref_acts_run(&acts);
    if (!group_of(w)->monitor)
        return;
    group_of(w)->monitor->view.version += ms > 200;
    monitor_answer_ripe(group_of(w)->monitor);
}

static void step(struct fuzz_input *in)
{
    const uint8_t what = (uint8_t)fuzz_take(in, 1);

    switch (what % 16) {
    case 0:
        program_calls();
        break;
    case 1:
        program_remotes();
        break;
    case 2:
        program_owns();
        break;
    case 3:
        program_passes();
        break;
    case 4:
        program_drops();
        break;
    case 5:
        program_gathers();
        break;
    case 6:
        peer_is_lost(1 + (what >> 4) % 2);
        break;
    case 7:
        time_passes(&fake.worker, fuzz_take(in, 1));
        break;
    case 8:
        fake.fails = !fake.fails;
        break;
    case 9:
        if (group_of(&fake.worker)->monitor)
            monitor_probe(group_of(&fake.worker)->monitor, 1 + (what >> 4) % 2,
                          FAKE_LIFE + 1 + (what >> 4) % 2);
        break;
    default:
        message_arrives(in);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct fuzz_input in = { data, len };

    fake_worker_make(fuzz_take(&in, 1) & OPTION_DYNAMIC);
    for (int i = 0; in.len && i < STEPS_MAX; i++)
        step(&in);
    fake_worker_end();
    return 0;
}
