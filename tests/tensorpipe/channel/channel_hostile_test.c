/* SPDX-License-Identifier: Apache-2.0 */
/* channel_hostile_test.c - a peer that sends malformed frames through Tenrec's own channel. */
#include "raw.h"

#include "node.h"
#include "wire/descriptor.h"
#include "wire/handshake/brochure.h"
#include "wire/tensorlist.h"
#include <stdlib.h>
#include <unistd.h>

enum { DESCRIPTOR, REPLY, LANE, CONTROL, CONNECTIONS };

static struct node n[2];

static void setup(void)
{
    group_open(n, 2, "sleep");
}

static void teardown(void)
{
    group_close(n, 2);
}

/* A pipe with tenrec_host over TCP, where the agent would choose it only if
 * tenrec_lanes did not suit. */
static void open_pipe(int fd[CONNECTIONS])
{
    const struct wire_transport uv = { "uv", "uv:*", NULL };
    const struct wire_channel_device cpu = { { nop_text("cpu"), 0 }, "2" };
    const struct wire_channel host = {
        .name = "tenrec_host", .devices = &cpu, .n_devices = 1, .n_connections = 2
    };
    const struct wire_offer offer = { &uv, &host, 1, 1, NULL };
    unsigned char buf[512];
    struct answer answer;
    struct nop_bytes ids;
    tenrec_error err;
    long len;

    fd[DESCRIPTOR] = raw_connect(n[1].address);
    raw_frame(fd[DESCRIPTOR], raw_hello, sizeof raw_hello);
    raw_frame(fd[DESCRIPTOR], buf, brochure_write(buf, sizeof buf, &offer));
    len = raw_recv_frame(fd[DESCRIPTOR], buf, sizeof buf);
    assert_true(len > 0);
    assert_int_equal(answer_read(buf, (size_t)len, &answer, &err), TENREC_OK);
    assert_true(answer_find_ids(&answer, "tenrec_host", &ids));
    assert_int_equal(nop_uint64_count(ids), 2);
    for (int i = REPLY; i < CONNECTIONS; i++) {
        fd[i] = raw_connect(n[1].address);
        raw_hello_requested(fd[i],
                            i == REPLY ? answer.reply_id : nop_uint64_at(ids, (size_t)(i - LANE)));
    }
}

static void close_pipe(int fd[CONNECTIONS])
{
    for (int i = 0; i < CONNECTIONS; i++)
        close(fd[i]);
}

/* A request with one tensor of `bytes` bytes and that note, without its bytes. */
static void send_request(int fd, uint64_t bytes, const struct descriptor_note *note)
{
    static const unsigned char type[4] = { 0x02, 0x01 }, id[8] = { 5 };
    const struct tenrec_tensor_desc desc = {
        .bytes = bytes,
        .dtype = { TENREC_DTYPE_UINT, 8, 1 },
        .ndim = 1,
        .device = { TENREC_CPU, 0 },
        .target = { TENREC_CPU, 0 },
        .shape = { (int64_t)bytes },
        .strides = { 1 },
    };
    unsigned char list[TENSORLIST_MAX(1)], buf[DESCRIPTOR_MAX(1)];
    uint64_t len[DESCRIPTOR_AGENT_PAYLOADS] = { 4, 8, 0, 0 };
    tenrec_error err;
    size_t list_len;

    assert_int_equal(
        tensorlist_write(list, sizeof list, &desc, 1, sizeof desc, false, &list_len, &err),
        TENREC_OK);
    len[3] = list_len;
    raw_frame(fd, buf, descriptor_write(buf, sizeof buf, len, &desc, 1, sizeof desc, note));
    raw_frame(fd, type, sizeof type);
    raw_frame(fd, id, sizeof id);
    raw_frame(fd, NULL, 0);
    raw_frame(fd, list, list_len);
}

TEST(channel_takes_tensors_of_both_lengths)
{
    const struct descriptor_note inline_note = { 0 }, lane_note = { 9, { 2, 3 } };
    unsigned char object[512], back[8];
    int fd[CONNECTIONS];

    for (int i = 0; i < 2; i++) {
        open_pipe(fd);
        send_request(fd[DESCRIPTOR], 5, i ? &lane_note : &inline_note);
        if (i) { /* in stripes of three bytes */
            raw_frame(fd[LANE], "abc", 3);
            raw_frame(fd[LANE], "de", 2);
        } else {
            raw_frame(fd[DESCRIPTOR], "abcde", 5);
        }
        for (int k = 0; k < 5; k++)
            assert_true(raw_recv_frame(fd[DESCRIPTOR], object, sizeof object) >= 0);
        assert_int_equal(raw_recv_frame(fd[DESCRIPTOR], back, sizeof back), 5);
        assert_memory_equal(back, "abcde", 5);
        close_pipe(fd);
    }
}

TEST(channel_ends_the_pipe_of_nonsense_on_its_control)
{
    static const struct {
        size_t len;
        unsigned char body[32];
    } said[] = {
        { 0, { 0 } },                             /* nothing */
        { 1, { 0 } },                             /* no such frame */
        { 1, { 77 } },                            /* nor this */
        { 2, { 1, 2 } },                          /* half a probe */
        { 1, { 2 } },                             /* "I can read": it was not asked */
        { 1, { 3 } },                             /* "I have read": what? */
        { 9, { 3, 0 } },                          /* one, but how many? */
        { 17, { 3, 0, 0, 0, 0, 0, 0, 0, 0, 1 } }, /* a tensor that was not announced */
        { 17, { 3, 0 } },                         /* none */
        { 9, { 4, 0 } },                          /* refuses it */
        { 14, { 5, 0 } },                         /* sends what was not refused */
        { 32, { 1 } },                            /* longer than any */
    };
    int fd[CONNECTIONS];

    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        open_pipe(fd);
        raw_frame(fd[CONTROL], said[i].body, said[i].len);
        assert_true(raw_closed(fd[DESCRIPTOR]));
        close_pipe(fd);
        assert_ping(&n[0], 1);
    }
}

TEST(channel_reads_nothing_from_an_unknown_process)
{
    unsigned char probe[17] = { 1, 1, 2, 3 };
    unsigned char nothing;
    struct raw_pipe plain;
    int fd[CONNECTIONS];

    open_pipe(fd);
    raw_frame(fd[CONTROL], probe, sizeof probe);
    /* No answer, and no harm: the next message is answered. */
    raw_pipe_open(&plain, n[1].address);
    raw_pipe_close(&plain);
    send_request(fd[DESCRIPTOR], 1, NULL);
    raw_frame(fd[DESCRIPTOR], "x", 1);
    assert_true(raw_recv(fd[DESCRIPTOR], &nothing, 1));
    close_pipe(fd);
    assert_ping(&n[0], 1);
}

TEST(channel_ends_the_pipe_of_notes_that_were_not_agreed)
{
    static const struct descriptor_note notes[] = {
        { 1, { 1 } },                         /* an address is missing */
        { 9, { 1, 1, 2, 3, 4, 5, 6, 7, 8 } }, /* never announced as readable */
        { 9, { 2 } },                         /* frames of no bytes */
        { 3, { 2, 1, 0 } },                   /* half a length */
        { 9, { 3, 1 } },                      /* mapped, but nothing is shared here */
        { 9, { 4, 1 } },                      /* our own word for what was refused */
        { 40, { 99 } },                       /* unknown */
    };
    int fd[CONNECTIONS];

    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        open_pipe(fd);
        send_request(fd[DESCRIPTOR], 5, &notes[i]);
        assert_true(raw_closed(fd[DESCRIPTOR]));
        close_pipe(fd);
        assert_ping(&n[0], 1);
    }
}

TEST(channel_ends_the_pipe_of_other_lengths_than_announced)
{
    const struct descriptor_note lane_note = { 9, { 2, 3 } };
    int fd[CONNECTIONS];

    for (int i = 0; i < 2; i++) {
        open_pipe(fd);
        send_request(fd[DESCRIPTOR], 5, i ? &lane_note : NULL);
        raw_frame(fd[i ? LANE : DESCRIPTOR], "abcd", 4);
        assert_true(raw_closed(fd[DESCRIPTOR]));
        close_pipe(fd);
        assert_ping(&n[0], 1);
    }
}

int main(void)
{
    return testing_run(setup, teardown);
}
