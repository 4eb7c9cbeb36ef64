/* SPDX-License-Identifier: Apache-2.0 */
/* sharing_hostile_test.c - malformed records, descriptors and release pages. */
#include "../testing.h"
#include "sharing_pair.h"

#include <sys/resource.h>
#include <tenrec/message.h>
#include <tenrec/tensor.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/tensor/release_page.h"
#include "core/tensor/sharing.h"
#include "core/tensor/sharing_inside.h"

static tenrec_status take_record(const unsigned char *record, uint64_t bytes, tenrec_error *err)
{
    struct tenrec_share share = { .size = sizeof share };
    struct tenrec_tensor_desc d = { .bytes = bytes };

    memcpy(share.record, record, sizeof share.record);
    return sharing_shared(holder, &share, &d, err);
}

TEST_WITH(sharing_refuses_records_that_make_no_sense, open_both, close_both)
{
    static const unsigned char bad[][TENREC_SHARE_RECORD] = {
        { 0 },                          /* no kind */
        { 4 },                          /* an unknown one */
        { 3 },                          /* to be written, in a region to be read */
        { 3, 0, 0, 0, 0, 0, 0, 0, 64 }, /* and not at a page's beginning */
        { 1, 0, 32 },                   /* no such place */
        { 1, 0, 255 },                  /* likewise */
        { 1, 0, 0, 0, 0, 4 },           /* slot 1024 */
        { 1, 0, 0, 0, 255, 255 },       /* slot 65535 */
        { 1, 4 },                       /* unknown flag */
        { 2, 0 },                       /* moved without a region */
        { 2, 3 },                       /* with a release page */
        { 1, 0, 0, 0, 0, 0, 0, 0, 1 },  /* offset 1 */
        { 1, 0, 0, 0, 0, 0, 0, 0, 192, 255, 255, 255, 255, 255, 255, 255 }, /* far beyond */
        { 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 },                          /* 4 GiB */
    };
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 5), *got = carry(t);
    tenrec_error err;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(take_record(bad[i], 64, &err), TENREC_EPROTOCOL);
    /* Before its region's end, and beyond it. */
    assert_int_equal(take_record((unsigned char[16]){ 1 }, UINT64_MAX, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "18446744073709551615 bytes at 0");
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(t);
}

TEST_WITH(sharing_refuses_a_loan_without_a_ledger, open_both, close_both)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 5);
    struct tenrec_tensor_desc d = *tenrec_tensor_desc(t);
    struct tenrec_share share;
    tenrec_error err;

    assert_true(sharing_share(owner, &d, &share));
    close(share.fd[0]);
    close(share.fd[1]);
    share.fd[0] = share.fd[2];
    share.n_fds = 1;
    share.record[1] = RECORD_REGION;
    assert_int_equal(sharing_shared(holder, &share, &d, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "release page");
    tenrec_tensor_drop(t);
}

TEST_WITH(sharing_refuses_descriptors_of_other_things, open_both, close_both)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 5);
    struct tenrec_tensor_desc d = *tenrec_tensor_desc(t);
    struct tenrec_share share;
    tenrec_error err;

    for (unsigned bad = 0; bad < 3; bad += 2) { /* the release page's page, the region */
        int line[2];
        assert_int_equal(pipe(line), 0);
        assert_true(sharing_share(owner, &d, &share));
        close(share.fd[bad]);
        share.fd[bad] = line[0];
        close(line[1]);
        assert_int_equal(sharing_shared(holder, &share, &d, &err), TENREC_EPROTOCOL);
        sharing_close(owner);
        sharing_close(holder);
        open_both();
    }
    tenrec_tensor_drop(t);
}

TEST_WITH(sharing_goes_on_when_descriptors_did_not_arrive, open_both, close_both)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 5), *u = make(20 * MIB, TENREC_SHARED, 6);
    struct tenrec_tensor_desc d = *tenrec_tensor_desc(u);
    struct tenrec_tensor *got = carry(t);
    struct tenrec_share share;
    tenrec_error err;

    assert_true(sharing_share(owner, &d, &share));
    assert_int_equal(share.n_fds, 1);
    close(share.fd[0]);
    share.n_fds = 0;
    assert_int_equal(sharing_shared(holder, &share, &d, &err), TENREC_EOS);
    assert_true(sharing_share(owner, &d, &share)); /* it believes that the region exists */
    assert_int_equal(sharing_shared(holder, &share, &d, &err), TENREC_EOS);
    tenrec_tensor_drop(got);
    got = carry(t);
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(t);
    tenrec_tensor_drop(u);
}

TEST_WITH(sharing_copies_when_the_sender_has_no_descriptors_left, open_both, close_both)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 5);
    struct tenrec_tensor *moves = make(MIB, TENREC_SHARED | TENREC_MOVES, 5), *got;
    struct rlimit before, none;
    struct tenrec_share share;
    bool shared, moved;

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

/* The peer may write anything into the release page: it ends its own loans. */
TEST_WITH(sharing_survives_a_ledger_full_of_nonsense, open_both, close_both)
{
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 5), *got = carry(t), *u;
    char *page = holder->holding->release_page.page.base;

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
