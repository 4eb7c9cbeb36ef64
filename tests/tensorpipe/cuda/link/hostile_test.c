/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_test.c - a peer that says what it likes on the connection of a link, and in
 * the notes beside its tensors. */
#include "../../../testing.h"
#include "agent/agent.h"
#include "cuda/link/link_parts.h"
#include "pipe/peer.h"
#include "pipe/pipe_send.h"
#include "rig.h"

#include <stdlib.h>
#include <sys/random.h>

#define BODY_MAX 2000

/* Zeros behind what is written out. */
struct forged {
    const char *what;
    size_t len;
    unsigned char body[80];
};

/* Tokens of processes are the same in all processes of this program, as that of a peer that
 * echoes them. */
ssize_t __real_getrandom(void *ret, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *ret, size_t len, unsigned flags);

ssize_t __wrap_getrandom(void *ret, size_t len, unsigned flags)
{
    if (len != PROCESS_TOKEN)
        return __real_getrandom(ret, len, flags);
    memset(ret, 7, len);
    return (ssize_t)len;
}

/* The pipe of the first side to the second; a reference. */
static struct pipe *pipe_of(struct rig *r)
{
    struct agent *a = r->n[0].agent.impl;
    struct peer *peer = peer_find(&a->ep, 1);
    const unsigned side = peer_enter(peer);
    struct pipe *p = peer_out(peer);

    assert_non_null(p);
    pipe_ref(p);
    peer_leave(&a->ep, peer, side);
    return p;
}

/* Returns true if calls of the first side still work. */
static bool is_in_use(struct rig *r, const struct pipe *p)
{
    struct agent *a = r->n[0].agent.impl;
    struct peer *peer = peer_find(&a->ep, 1);
    const unsigned side = peer_enter(peer);
    const bool is = peer_out(peer) == p;

    peer_leave(&a->ep, peer, side);
    return is;
}

static void forge(struct pipe *p, const struct forged *f)
{
    unsigned char body[BODY_MAX] = { 0 };

    memcpy(body, f->body, sizeof f->body);
    assert_int_equal(pipe_send_object(p, p->devices.role, body, f->len), TENREC_OK);
}

/* On the connection of a pipe that has carried a tensor. */
TEST(hostile_frames_end_the_pipe_only)
{
    static const struct forged all[] = {
        { "an unknown kind", 9, { 9 } },
        { "kind 0", 1, { 0 } },
        { "a hello that ends early", 4, { SAID_HELLO, LINK_VERSION, 14, 0 } },
        { "a hello of too many devices", 68 + 16 * 16, { SAID_HELLO, LINK_VERSION, 14, 255 } },
        { "a hello of more devices than it has", 68 + 16, { SAID_HELLO, LINK_VERSION, 14, 2 } },
        { "a hello of less", 68 + 32, { SAID_HELLO, LINK_VERSION, 14, 1 } },
        { "a hello of another process", 68, { SAID_HELLO, LINK_VERSION, 14, 0 } },
        { "taken, of nothing", 9, { SAID_TAKEN, 77 } },
        { "taken, without a number", 3, { SAID_TAKEN } },
        { "taken, and more", 30, { SAID_TAKEN } },
        { "refused, of nothing", 9, { SAID_REFUSED, 1 } },
        { "refused, without a number", 1, { SAID_REFUSED } },
        { "failed, without a number", 5, { SAID_FAILED } },
        { "a frame too long", SAID_MAX + 1, { SAID_TAKEN } },
        { "a piece without its head", PIECE_HEAD - 1, { SAID_PIECE, 1 } },
    };
    const struct rig_setup setup = { .two_processes = false };
    struct rig r;

    rig_open(&r, &setup);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct pipe *p;

        rig_call(&r, &(struct rig_tensor){ 5000, 0, 0, 0 }, 1, (uint32_t)i);
        p = pipe_of(&r);
        forge(p, &all[i]);
        assert_becomes(pipe_state(p) == PIPE_BROKEN && !is_in_use(&r, p));
        pipe_unref(p);
    }
    rig_call(&r, &(struct rig_tensor){ 5000, 0, 0, 0 }, 1, 1);
    rig_close(&r);
}

/* What is about a message that is not there waits for it: nothing else does. */
TEST(hostile_frames_about_nothing_hold_up_nothing_else)
{
    static const struct forged all[] = {
        { "failed", 20, { SAID_FAILED, 99 } },
        { "a piece", PIECE_HEAD + 5, { SAID_PIECE, 99 } },
        { "a piece of no bytes", PIECE_HEAD, { SAID_PIECE, 99 } },
    };
    const struct rig_setup setup = { .two_processes = false };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct rig r;
        struct pipe *p;

        rig_open(&r, &setup);
        rig_call(&r, &(struct rig_tensor){ 5000, 0, 0, 0 }, 1, 1);
        p = pipe_of(&r);
        forge(p, &all[i]);
        pipe_unref(p);
        rig_ping(&r);
        rig_call(&r, &(struct rig_tensor){ 5000, 0, 0, 0 }, 1, 2);
        rig_close(&r);
    }
}

TEST(hostile_notes_are_refused)
{
    static const struct forged all[] = {
        { "nothing", 0, { 0 } },
        { "a kind of host memory", 9, { 1 } },
        { "an unknown kind", 9, { NOTE_KIND + 4 } },
        { "no number", 1, { NOTE_KIND + METHOD_BASIC } },
        { "too short", NOTE_SHORT - 1, { NOTE_KIND + METHOD_XTH } },
        { "too long", NOTE_SHORT + 1, { NOTE_KIND + METHOD_BASIC } },
        { "handles that end early", NOTE_IPC - 1, { NOTE_KIND + METHOD_IPC } },
        { "no handles", NOTE_SHORT, { NOTE_KIND + METHOD_IPC } },
        { "memory of the host by handles", NOTE_IPC, { NOTE_KIND + METHOD_IPC } },
        { "memory of the host by a loan", NOTE_SHORT, { NOTE_KIND + METHOD_XTH } },
    };
    const struct descriptor_tensor t = { .length = 16, .has_target = true };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        unsigned char note[BODY_MAX] = { 0 };
        struct arriving *in = NULL;
        tenrec_error err;

        memcpy(note, all[i].body, sizeof all[i].body);
        if (link_announced(NULL, &in, 1, 0, (struct nop_bytes){ note, all[i].len }, &t, &err) !=
            TENREC_EPROTOCOL)
            fail_msg("%s: taken", all[i].what);
        free(in);
    }
}

/* Taken for the own process, the peer would be lent addresses of this one. */
TEST(hostile_token_of_ours_makes_no_other_process_ours)
{
    static const char *const over[] = { "uv", "shm" };

    for (size_t i = 0; i < sizeof over / sizeof over[0]; i++) {
        const struct rig_setup setup = { .two_processes = true, .transport = over[i] };
        struct rig r;

        rig_open(&r, &setup);
        rig_call(&r, &(struct rig_tensor){ 5000, 0, 0, 0 }, 1, 1);
        assert_int_equal(rig_count(&r, "cuda.xth"), 0);
        assert_int_equal(rig_count(&r, "cuda.ipc"), 1);
        rig_close(&r);
    }
}

int main(int argc, char **argv)
{
    const char *why;

    rig_child(argc, argv);
    if (!fake_open(&why)) {
        printf("1..0 # SKIP no GPU: %s\n", why);
        return 77;
    }
    return testing_run(NULL, NULL);
}
