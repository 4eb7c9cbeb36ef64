/* Sharing: an owner and a holder of memory, both here or in two processes. What
 * a plugin does between them - carry records in order, and descriptors - the
 * test does itself. */
#include "../testing.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tenrec/tensor.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ledger.h"
#include "base/storage_pool.h"
#include "rpc/mapping.h"
#include "rpc/shared_memory.h"
#include "rpc/sharing.h"
#include "rpc/sharing_inside.h"

#define MIB (1 << 20)

static struct tenrec_sharing *owner, *holder;

static int open_both(void **state)
{
    (void)state;
    owner = sharing_open();
    holder = sharing_open();
    return !owner || !holder;
}

/* After each case nothing is left of anything. */
static int close_both(void **state)
{
    (void)state;
    sharing_close(holder);
    sharing_close(owner);
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 0);
    assert_int_equal(mapping_count().regions, 0);
    assert_int_equal(mapping_count().tensors, 0);
    assert_int_equal(shared_memory_count().blocks, 0);
    assert_int_equal(shared_memory_count().regions, 0); /* no worker allows to keep any */
    return 0;
}

static struct tenrec_tensor *make(int64_t bytes, uint32_t flags, int fill)
{
    struct tenrec_tensor *t = NULL;
    tenrec_error err;

    assert_status(tenrec_tensor_alloc(TENREC_UINT8, 1, &bytes, flags, &t, &err), &err);
    memset(tenrec_tensor_data(t), fill, (size_t)bytes);
    return t;
}

/* As a plugin and the place of messages do it. */
static tenrec_status take(struct tenrec_sharing *to, struct tenrec_share *share,
                          const struct tenrec_tensor_desc *desc, struct tenrec_tensor **ret,
                          tenrec_error *err)
{
    struct tenrec_tensor_desc d = *desc;
    tenrec_status st = sharing_shared(to, share, &d, err);

    if (st != TENREC_OK)
        return st;
    st = mapping_tensor(d.mapping, &d, ret, err);
    if (st != TENREC_OK)
        mapping_drop(d.mapping);
    return st;
}

static struct tenrec_tensor *carry(const struct tenrec_tensor *t)
{
    struct tenrec_tensor *got = NULL;
    struct tenrec_share share;
    tenrec_error err;

    assert_true(sharing_share(owner, tenrec_tensor_desc(t), &share));
    assert_status(take(holder, &share, tenrec_tensor_desc(t), &got, &err), &err);
    assert_int_equal(share.n_fds, 0);
    return got;
}

static unsigned char *bytes_of(const struct tenrec_tensor *t)
{
    return tenrec_tensor_data(t);
}

/* ---- lending ------------------------------------------------------------------- */

static void sharing_maps_what_is_lent(void **state)
{
    struct tenrec_tensor *t = make(5 * MIB, TENREC_SHARED, 3), *got = carry(t);

    (void)state;
    assert_ptr_not_equal(bytes_of(got), bytes_of(t));
    assert_memory_equal(bytes_of(got), bytes_of(t), 5 * MIB);
    assert_true(tenrec_tensor_desc(got)->flags & TENREC_TENSOR_READ_ONLY);
    bytes_of(t)[77] = 9;
    assert_int_equal(bytes_of(got)[77], 9); /* the same memory */
    assert_int_equal(sharing_lent(), 1);
    assert_int_equal(mapping_count().tensors, 1);
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(t);
}

static void sharing_passes_descriptors_once(void **state)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 1), *u = make(MIB, TENREC_SHARED, 2);
    struct tenrec_tensor *got[3];
    struct tenrec_share share;
    tenrec_error err;

    (void)state;
    got[0] = carry(t);
    assert_true(sharing_share(owner, tenrec_tensor_desc(t), &share));
    assert_int_equal(share.n_fds, 0);
    assert_status(take(holder, &share, tenrec_tensor_desc(t), &got[1], &err), &err);
    assert_true(sharing_share(owner, tenrec_tensor_desc(u), &share)); /* of the same region */
    assert_int_equal(share.n_fds, 0);
    assert_status(take(holder, &share, tenrec_tensor_desc(u), &got[2], &err), &err);
    assert_ptr_equal(bytes_of(got[0]), bytes_of(got[1]));
    assert_int_equal(bytes_of(got[2])[0], 2);
    assert_int_equal(mapping_count().regions, 1);
    for (int i = 0; i < 3; i++)
        tenrec_tensor_drop(got[i]);
    tenrec_tensor_drop(t);
    tenrec_tensor_drop(u);
}

static void sharing_gives_memory_back_when_the_holder_drops_it(void **state)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 1), *got = carry(t);

    (void)state;
    tenrec_tensor_drop(t);
    assert_true(sharing_collect(clock_now_ns()) != CLOCK_NEVER);
    assert_int_equal(shared_memory_count().blocks, 1);
    assert_int_equal(bytes_of(got)[0], 1);
    tenrec_tensor_drop(got);
    assert_true(sharing_collect(clock_now_ns()) == CLOCK_NEVER);
    assert_int_equal(shared_memory_count().blocks, 0);
}

static void sharing_uses_memory_again_only_when_it_came_back(void **state)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 1), *got = carry(t), *u;
    void *data = bytes_of(t);

    (void)state;
    tenrec_tensor_drop(t);
    u = make(MIB, TENREC_SHARED, 2);
    assert_ptr_not_equal(bytes_of(u), data);
    assert_int_equal(bytes_of(got)[MIB - 1], 1);
    tenrec_tensor_drop(got);
    t = make(MIB, TENREC_SHARED, 3);
    assert_ptr_equal(bytes_of(t), data);
    tenrec_tensor_drop(t);
    tenrec_tensor_drop(u);
}

static void sharing_carries_views_of_a_shared_storage(void **state)
{
    static const int64_t shape[] = { 10, 100 }, strides[] = { 1000, 2 };
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 0), *got = NULL, *view = NULL;
    struct tenrec_tensor_desc d;
    struct tenrec_share share;
    tenrec_error err;

    (void)state;
    bytes_of(t)[6400 + 9 * 1000 + 99 * 2] = 42;
    /* A tensor of the program's own on a part of the storage. */
    assert_status(tenrec_tensor_from_data(bytes_of(t) + 6400, 64000, TENREC_UINT8, 2, shape,
                                          strides, NULL, NULL, &view, &err),
                  &err);
    assert_true(sharing_share(owner, tenrec_tensor_desc(view), &share));
    assert_status(take(holder, &share, tenrec_tensor_desc(view), &got, &err), &err);
    assert_int_equal(bytes_of(got)[9 * 1000 + 99 * 2], 42);
    tenrec_tensor_drop(got);
    /* An offset within it, as a message brings it. */
    d = *tenrec_tensor_desc(t);
    d.byte_offset = 100;
    d.ndim = 2;
    memcpy(d.shape, shape, sizeof shape);
    memcpy(d.strides, strides, sizeof strides);
    assert_true(sharing_share(owner, &d, &share));
    assert_status(take(holder, &share, &d, &got, &err), &err);
    assert_ptr_equal(bytes_of(got), (char *)tenrec_tensor_desc(got)->data + 100);
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(view);
    tenrec_tensor_drop(t);
}

static void sharing_leaves_other_memory_to_be_copied(void **state)
{
    static unsigned char data[100];
    const int64_t shape[] = { 100 };
    struct tenrec_tensor *t = NULL, *shared = make(MIB, TENREC_SHARED, 0), *odd = NULL;
    struct tenrec_share share;
    tenrec_error err;

    (void)state;
    assert_status(
        tenrec_tensor_from_data(data, 100, TENREC_UINT8, 1, shape, NULL, NULL, NULL, &t, &err),
        &err);
    assert_false(sharing_share(owner, tenrec_tensor_desc(t), &share));
    /* No tensor begins so in memory of Tenrec's. */
    assert_status(tenrec_tensor_from_data(bytes_of(shared) + 4, 100, TENREC_UINT8, 1, shape, NULL,
                                          NULL, NULL, &odd, &err),
                  &err);
    assert_false(sharing_share(owner, tenrec_tensor_desc(odd), &share));
    tenrec_tensor_drop(odd);
    tenrec_tensor_drop(shared);
    tenrec_tensor_drop(t);
}

/* The receiver's tensor is the owner's memory: who gets it from there, copies. */
static void sharing_does_not_lend_what_is_lent(void **state)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 1), *got = carry(t);
    struct tenrec_share share;

    (void)state;
    assert_false(sharing_share(holder, tenrec_tensor_desc(got), &share));
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(t);
}

static void sharing_copies_when_all_slots_are_lent(void **state)
{
    static struct tenrec_tensor *got[LEDGER_SLOTS];
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 1);
    struct tenrec_share share;

    (void)state;
    for (int i = 0; i < LEDGER_SLOTS; i++)
        got[i] = carry(t);
    assert_false(sharing_share(owner, tenrec_tensor_desc(t), &share));
    tenrec_tensor_drop(got[500]);
    got[500] = carry(t);
    for (int i = 0; i < LEDGER_SLOTS; i++)
        tenrec_tensor_drop(got[i]);
    tenrec_tensor_drop(t);
}

static void sharing_keeps_a_bounded_number_of_mappings(void **state)
{
    enum { MORE = SHARING_REGIONS + 8 };
    struct tenrec_tensor *t[MORE], *first, *again;

    (void)state;
    for (int i = 0; i < MORE; i++)
        t[i] = make(17 * MIB, TENREC_SHARED, i);
    first = carry(t[0]);
    for (int i = 1; i < MORE; i++)
        tenrec_tensor_drop(carry(t[i]));
    /* All that it may have, and the one that is in use. */
    assert_int_equal(mapping_count().regions, SHARING_REGIONS + 1);
    assert_int_equal(bytes_of(first)[5], 0);
    again = carry(t[0]);
    assert_ptr_not_equal(bytes_of(again), bytes_of(first));
    tenrec_tensor_drop(again);
    tenrec_tensor_drop(first);
    assert_int_equal(mapping_count().regions, SHARING_REGIONS);
    for (int i = 0; i < MORE; i++)
        tenrec_tensor_drop(t[i]);
}

static void sharing_takes_back_what_could_not_be_queued(void **state)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 1), *got;
    struct tenrec_share share[2];

    (void)state;
    assert_true(sharing_share(owner, tenrec_tensor_desc(t), &share[0]));
    assert_true(sharing_share(owner, tenrec_tensor_desc(t), &share[1]));
    sharing_share_back(owner, &share[1]);
    sharing_share_back(owner, &share[0]);
    assert_int_equal(sharing_lent(), 0);
    got = carry(t); /* and brings all descriptors again */
    assert_int_equal(bytes_of(got)[0], 1);
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(t);
}

static void sharing_ends_a_loan_when_nobody_wants_the_message(void **state)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 1), *got;
    struct tenrec_share share;
    tenrec_error err;

    (void)state;
    assert_true(sharing_share(owner, tenrec_tensor_desc(t), &share));
    assert_status(sharing_shared(holder, &share, NULL, &err), &err);
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 0);
    got = carry(t); /* the region that came with it is known */
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(t);
}

/* ---- connections that end --------------------------------------------------------- */

static void sharing_lets_the_holder_keep_what_it_has_when_the_connection_ends(void **state)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 6), *got = carry(t), *u;

    (void)state;
    sharing_close(owner);
    sharing_close(holder);
    owner = holder = NULL;
    tenrec_tensor_drop(t);
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 1);
    u = make(MIB, TENREC_SHARED, 7);
    assert_int_equal(bytes_of(got)[MIB - 1], 6);
    tenrec_tensor_drop(u);
    tenrec_tensor_drop(got);
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 0);
}

static void sharing_takes_back_what_never_arrived_when_the_connection_ends(void **state)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 6), *got = carry(t);
    struct tenrec_share lost;

    (void)state;
    assert_true(sharing_share(owner, tenrec_tensor_desc(t), &lost));
    sharing_close(owner);
    owner = NULL;
    tenrec_tensor_drop(t);
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 2); /* it may still come */
    sharing_close(holder);
    holder = NULL;
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 1);
    assert_int_equal(bytes_of(got)[0], 6);
    tenrec_tensor_drop(got);
}

static void sharing_takes_all_back_when_even_the_ledger_never_arrived(void **state)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 6);
    struct tenrec_share lost;

    (void)state;
    assert_true(sharing_share(owner, tenrec_tensor_desc(t), &lost));
    assert_int_equal(lost.n_fds, 3);
    sharing_close(owner);
    owner = NULL;
    tenrec_tensor_drop(t);
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 1);
    for (unsigned i = 0; i < lost.n_fds; i++)
        close(lost.fd[i]);
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 0);
}

/* ---- moving ----------------------------------------------------------------------- */

static void sharing_moves_memory_that_its_receiver_may_write(void **state)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED | TENREC_MOVES, 5), *got = carry(t);

    (void)state;
    assert_false(tenrec_tensor_desc(got)->flags & TENREC_TENSOR_READ_ONLY);
    tenrec_tensor_drop(t);
    assert_int_equal(bytes_of(got)[MIB - 1], 5);
    memset(bytes_of(got), 8, MIB);
    assert_int_equal(bytes_of(got)[3], 8);
    assert_int_equal(sharing_lent(), 0);
    tenrec_tensor_drop(got);
}

static void sharing_moves_memory_once(void **state)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED | TENREC_MOVES, 5), *got = carry(t);
    struct tenrec_share share;

    (void)state;
    assert_false(sharing_share(owner, tenrec_tensor_desc(t), &share));
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(t);
}

/* Who got memory for its own lends it as its own. */
static void sharing_lends_on_what_was_moved(void **state)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED | TENREC_MOVES, 5), *got = carry(t), *back;
    struct tenrec_share share;
    tenrec_error err;

    (void)state;
    tenrec_tensor_drop(t);
    bytes_of(got)[0] = 99;
    assert_true(sharing_share(holder, tenrec_tensor_desc(got), &share));
    assert_status(take(owner, &share, tenrec_tensor_desc(got), &back, &err), &err);
    assert_int_equal(bytes_of(back)[0], 99);
    assert_true(tenrec_tensor_desc(back)->flags & TENREC_TENSOR_READ_ONLY);
    tenrec_tensor_drop(got);
    assert_int_equal(bytes_of(back)[0], 99);
    tenrec_tensor_drop(back);
}

/* ---- nonsense --------------------------------------------------------------------- */

static tenrec_status take_record(const unsigned char *record, uint64_t bytes, tenrec_error *err)
{
    struct tenrec_share share = { .size = sizeof share };
    struct tenrec_tensor_desc d = { .bytes = bytes };

    memcpy(share.record, record, sizeof share.record);
    return sharing_shared(holder, &share, &d, err);
}

static void sharing_refuses_records_that_make_no_sense(void **state)
{
    static const unsigned char bad[][TENREC_SHARE_RECORD] = {
        { 0 },                         /* no kind */
        { 3 },                         /* an unknown one */
        { 1, 0, 32 },                  /* no such place */
        { 1, 0, 255 },                 /* likewise */
        { 1, 0, 0, 0, 0, 4 },          /* slot 1024 */
        { 1, 0, 0, 0, 255, 255 },      /* slot 65535 */
        { 1, 4 },                      /* unknown flag */
        { 2, 0 },                      /* moved without a region */
        { 2, 3 },                      /* with a ledger */
        { 1, 0, 0, 0, 0, 0, 0, 0, 1 }, /* offset 1 */
        { 1, 0, 0, 0, 0, 0, 0, 0, 192, 255, 255, 255, 255, 255, 255, 255 }, /* far beyond */
        { 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 },                          /* 4 GiB */
    };
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 5), *got = carry(t);
    tenrec_error err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(take_record(bad[i], 64, &err), TENREC_EPROTOCOL);
    /* Before its region's end, and beyond it. */
    assert_int_equal(take_record((unsigned char[16]){ 1 }, UINT64_MAX, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "18446744073709551615 bytes at 0");
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(t);
}

static void sharing_refuses_a_loan_without_a_ledger(void **state)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 5);
    struct tenrec_tensor_desc d = *tenrec_tensor_desc(t);
    struct tenrec_share share;
    tenrec_error err;

    (void)state;
    assert_true(sharing_share(owner, &d, &share));
    close(share.fd[0]);
    close(share.fd[1]);
    share.fd[0] = share.fd[2];
    share.n_fds = 1;
    share.record[1] = RECORD_REGION;
    assert_int_equal(sharing_shared(holder, &share, &d, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "ledger");
    tenrec_tensor_drop(t);
}

static void sharing_refuses_descriptors_of_other_things(void **state)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 5);
    struct tenrec_tensor_desc d = *tenrec_tensor_desc(t);
    struct tenrec_share share;
    tenrec_error err;

    (void)state;
    for (unsigned bad = 0; bad < 3; bad += 2) { /* the ledger's page, the region */
        int line[2];
        assert_int_equal(pipe(line), 0);
        assert_true(sharing_share(owner, &d, &share));
        close(share.fd[bad]);
        share.fd[bad] = line[0];
        close(line[1]);
        assert_int_equal(sharing_shared(holder, &share, &d, &err), TENREC_EPROTOCOL);
        sharing_close(owner);
        sharing_close(holder);
        assert_int_equal(open_both(NULL), 0);
    }
    tenrec_tensor_drop(t);
}

static void sharing_goes_on_when_descriptors_did_not_arrive(void **state)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 5), *u = make(20 * MIB, TENREC_SHARED, 6);
    struct tenrec_tensor_desc d = *tenrec_tensor_desc(u);
    struct tenrec_tensor *got = carry(t);
    struct tenrec_share share;
    tenrec_error err;

    (void)state;
    assert_true(sharing_share(owner, &d, &share));
    assert_int_equal(share.n_fds, 1);
    close(share.fd[0]);
    share.n_fds = 0;
    assert_int_equal(sharing_shared(holder, &share, &d, &err), TENREC_EOS);
    assert_true(sharing_share(owner, &d, &share)); /* it believes that the region is there */
    assert_int_equal(sharing_shared(holder, &share, &d, &err), TENREC_EOS);
    tenrec_tensor_drop(got);
    got = carry(t);
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(t);
    tenrec_tensor_drop(u);
}

static void sharing_copies_when_the_sender_has_no_descriptors_left(void **state)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 5);
    struct tenrec_tensor *moves = make(MIB, TENREC_SHARED | TENREC_MOVES, 5), *got;
    struct rlimit before, none;
    struct tenrec_share share;
    bool shared, moved;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ 3, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    shared = sharing_share(owner, tenrec_tensor_desc(t), &share);
    moved = sharing_share(owner, tenrec_tensor_desc(moves), &share);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_false(shared);
    assert_false(moved);
    got = carry(t);
    tenrec_tensor_drop(got);
    got = carry(moves); /* it stayed, so it can still go */
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(moves);
    tenrec_tensor_drop(t);
}

/* The peer may write anything into the ledger: it ends its own loans. */
static void sharing_survives_a_ledger_full_of_nonsense(void **state)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 5), *got = carry(t), *u;
    char *page = holder->holding->ledger.page.base;

    (void)state;
    memset(page, 0xff, 4096);
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 0);
    memset(page, 0xff, 4096);
    u = carry(t);
    memset(page, 0xa5, 4096);
    sharing_collect(clock_now_ns());
    assert_true(sharing_lent() <= 1);
    assert_int_equal(bytes_of(t)[0], 5);
    tenrec_tensor_drop(u);
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(t);
}

/* ---- two processes ------------------------------------------------------------------ */

/* What goes over the socket in front of the descriptors. */
struct packet {
    unsigned char record[TENREC_SHARE_RECORD];
    uint64_t bytes;
};

static void send_share(int to, struct tenrec_share *share, uint64_t bytes)
{
    struct packet p = { .bytes = bytes };
    struct iovec iov = { &p, sizeof p };
    char room[CMSG_SPACE(sizeof share->fd)] = { 0 };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

    memcpy(p.record, share->record, sizeof p.record);
    if (share->n_fds) {
        struct cmsghdr *c;
        m.msg_control = room;
        m.msg_controllen = CMSG_SPACE(share->n_fds * sizeof(int));
        c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(share->n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), share->fd, share->n_fds * sizeof(int));
    }
    assert_int_equal(sendmsg(to, &m, 0), sizeof p);
    while (share->n_fds > 0)
        close(share->fd[--share->n_fds]);
}

/* False: the other end is gone. */
static bool receive_share(int from, struct tenrec_share *share, uint64_t *ret_bytes)
{
    struct packet p;
    struct iovec iov = { &p, sizeof p };
    char room[CMSG_SPACE(sizeof share->fd)];
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
    };
    struct cmsghdr *c;

    if (recvmsg(from, &m, MSG_CMSG_CLOEXEC) != sizeof p)
        return false;
    *share = (struct tenrec_share){ .size = sizeof *share };
    memcpy(share->record, p.record, sizeof p.record);
    c = CMSG_FIRSTHDR(&m);
    if (c) {
        share->n_fds = (uint32_t)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(share->fd, CMSG_DATA(c), share->n_fds * sizeof(int));
    }
    *ret_bytes = p.bytes;
    return true;
}

static void tell(int fd, char byte)
{
    if (write(fd, &byte, 1) != 1)
        _exit(9);
}

static char hear(int fd)
{
    char byte = 0;

    return read(fd, &byte, 1) == 1 ? byte : 0;
}

struct child {
    pid_t pid;
    int data, talk; /* sockets */
};

typedef void child_fn(int data, int talk);

static struct child start(child_fn *fn)
{
    int data[2], talk[2];
    struct child c;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, data), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk), 0);
    c = (struct child){ fork(), data[0], talk[0] };
    if (c.pid == 0) {
        close(data[0]);
        close(talk[0]);
        fn(data[1], talk[1]);
        _exit(0);
    }
    assert_true(c.pid > 0);
    close(data[1]);
    close(talk[1]);
    return c;
}

/* Returns the signal that ended it, or minus its exit status. */
static int end(struct child *c, int sig)
{
    int status;

    if (sig)
        kill(c->pid, sig);
    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    close(c->data);
    close(c->talk);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

/* Takes one tensor of bytes over the socket; NULL: it did not come. */
static struct tenrec_tensor *receive(struct tenrec_sharing *s, int data)
{
    struct tenrec_tensor *t = NULL;
    struct tenrec_share share;
    struct tenrec_tensor_desc d = {
        .ndim = 1, .dtype = TENREC_UINT8, .device = { TENREC_CPU, 0 }, .strides = { 1 }
    };

    if (!receive_share(data, &share, &d.bytes))
        return NULL;
    d.shape[0] = (int64_t)d.bytes;
    return take(s, &share, &d, &t, NULL) == TENREC_OK ? t : NULL;
}

/* Holds each tensor until it is told 'd'; answers with its first byte. */
static void hold(int data, int talk)
{
    struct tenrec_sharing *s = sharing_open();
    struct tenrec_tensor *t;

    while ((t = receive(s, data))) {
        tell(talk, (char)bytes_of(t)[0]);
        if (hear(talk) != 'd')
            break;
        tenrec_tensor_drop(t);
        tell(talk, 'D');
    }
    sharing_close(s);
}

static void lend_to(struct child *c, const struct tenrec_tensor *t)
{
    struct tenrec_share share;

    assert_true(sharing_share(owner, tenrec_tensor_desc(t), &share));
    send_share(c->data, &share, tenrec_tensor_desc(t)->bytes);
    assert_int_equal(hear(c->talk), bytes_of(t)[0]);
}

static void sharing_counts_across_processes(void **state)
{
    struct child c = start(hold);
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 'x');

    (void)state;
    for (int i = 0; i < 3; i++) {
        lend_to(&c, t);
        sharing_collect(clock_now_ns());
        assert_int_equal(sharing_lent(), 1);
        tell(c.talk, 'd');
        assert_int_equal(hear(c.talk), 'D');
        sharing_collect(clock_now_ns());
        assert_int_equal(sharing_lent(), 0);
    }
    tenrec_tensor_drop(t);
    shutdown(c.data, SHUT_RDWR);
    assert_int_equal(end(&c, 0), 0);
}

static void sharing_gets_memory_back_when_the_holder_is_killed(void **state)
{
    struct child c = start(hold);
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 'x');

    (void)state;
    lend_to(&c, t);
    tenrec_tensor_drop(t);
    assert_int_equal(end(&c, SIGKILL), SIGKILL);
    sharing_close(owner); /* its connection broke */
    owner = NULL;
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 0);
    assert_int_equal(shared_memory_count().blocks, 0);
}

/* Its memory is there as long as somebody has it. */
static void die_as_owner(int data, int talk)
{
    struct tenrec_sharing *s = sharing_open();
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 'o');
    struct tenrec_share share;

    if (!sharing_share(s, tenrec_tensor_desc(t), &share))
        _exit(1);
    send_share(data, &share, MIB);
    hear(talk); /* until it is killed */
    _exit(2);
}

static void sharing_keeps_the_mapping_when_the_owner_is_killed(void **state)
{
    struct child c = start(die_as_owner);
    struct tenrec_tensor *t = receive(holder, c.data);

    (void)state;
    assert_non_null(t);
    assert_int_equal(end(&c, SIGKILL), SIGKILL);
    for (int i = 0; i < MIB; i += 4096)
        assert_int_equal(bytes_of(t)[i], 'o');
    sharing_close(holder);
    holder = NULL;
    assert_int_equal(bytes_of(t)[MIB - 1], 'o');
    tenrec_tensor_drop(t);
}

static void write_into(int data, int talk)
{
    struct tenrec_tensor *t = receive(sharing_open(), data);
    const struct rlimit none = { 0, 0 };

    if (!t)
        _exit(1);
    setrlimit(RLIMIT_CORE, &none);
    signal(SIGSEGV, SIG_DFL); /* also where a sanitizer has its own */
    tell(talk, (char)bytes_of(t)[0]);
    bytes_of(t)[0] = 'y';
    tell(talk, 'w');
}

static void sharing_faults_who_writes_into_what_is_lent(void **state)
{
    struct child c = start(write_into);
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 'x');

    (void)state;
    lend_to(&c, t);
    assert_int_equal(hear(c.talk), 0);
    assert_int_equal(end(&c, 0), SIGSEGV);
    assert_int_equal(bytes_of(t)[0], 'x');
    tenrec_tensor_drop(t);
    sharing_close(owner);
    owner = NULL;
}

static void sharing_lets_the_receiver_write_what_was_moved(void **state)
{
    struct child c = start(write_into);
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED | TENREC_MOVES, 'x');
    struct tenrec_share share;

    (void)state;
    assert_true(sharing_share(owner, tenrec_tensor_desc(t), &share));
    send_share(c.data, &share, MIB);
    tenrec_tensor_drop(t);
    assert_int_equal(shared_memory_count().regions, 0);
    assert_int_equal(hear(c.talk), 'x');
    assert_int_equal(hear(c.talk), 'w');
    assert_int_equal(end(&c, 0), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_both, close_both)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(sharing_maps_what_is_lent),
        CASE(sharing_passes_descriptors_once),
        CASE(sharing_gives_memory_back_when_the_holder_drops_it),
        CASE(sharing_uses_memory_again_only_when_it_came_back),
        CASE(sharing_carries_views_of_a_shared_storage),
        CASE(sharing_leaves_other_memory_to_be_copied),
        CASE(sharing_does_not_lend_what_is_lent),
        CASE(sharing_copies_when_all_slots_are_lent),
        CASE(sharing_keeps_a_bounded_number_of_mappings),
        CASE(sharing_takes_back_what_could_not_be_queued),
        CASE(sharing_ends_a_loan_when_nobody_wants_the_message),
        CASE(sharing_lets_the_holder_keep_what_it_has_when_the_connection_ends),
        CASE(sharing_takes_back_what_never_arrived_when_the_connection_ends),
        CASE(sharing_takes_all_back_when_even_the_ledger_never_arrived),
        CASE(sharing_moves_memory_that_its_receiver_may_write),
        CASE(sharing_moves_memory_once),
        CASE(sharing_lends_on_what_was_moved),
        CASE(sharing_refuses_records_that_make_no_sense),
        CASE(sharing_refuses_a_loan_without_a_ledger),
        CASE(sharing_refuses_descriptors_of_other_things),
        CASE(sharing_goes_on_when_descriptors_did_not_arrive),
        CASE(sharing_copies_when_the_sender_has_no_descriptors_left),
        CASE(sharing_survives_a_ledger_full_of_nonsense),
        CASE(sharing_counts_across_processes),
        CASE(sharing_gets_memory_back_when_the_holder_is_killed),
        CASE(sharing_keeps_the_mapping_when_the_owner_is_killed),
        CASE(sharing_faults_who_writes_into_what_is_lent),
        CASE(sharing_lets_the_receiver_write_what_was_moved),
    };

    return cmocka_run_group_tests_name("sharing", tests, NULL, NULL);
}
