/* SPDX-License-Identifier: Apache-2.0 */
/* sharing_private_test.c - memory that its receiver may write, page by page on copies. */
#include "../testing.h"
#include "sharing_pair.h"

#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/tensor/mapping.h"
#include "core/tensor/shared_memory.h"
#include "core/tensor/sharing.h"
#include "core/tensor/sharing_inside.h"

static void assert_filled(const struct tenrec_tensor *t, int with)
{
    const unsigned char *data = bytes_of(t);

    for (uint64_t i = 0; i < tenrec_tensor_desc(t)->bytes; i++)
        if (data[i] != with)
            fail_msg("byte %llu is %d, expected %d", (unsigned long long)i, data[i], with);
}

TEST_WITH(sharing_private_is_written_by_its_receiver_alone, open_both, close_both)
{
    struct tenrec_tensor *t = make_private(5 * MIB + 100, 3), *got = carry(t);

    assert_ptr_not_equal(bytes_of(got), bytes_of(t));
    assert_false(tenrec_tensor_desc(got)->flags & TENREC_TENSOR_READ_ONLY);
    assert_filled(got, 3);
    memset(bytes_of(got), 4, 5 * MIB + 100);
    assert_filled(got, 4);
    assert_filled(t, 3);
    tenrec_tensor_drop(t);
    tenrec_tensor_drop(got);
}

/* Bytes written into pages of one tensor are not visible in the next tensor there. */
TEST_WITH(sharing_private_memory_is_used_again_with_the_bytes_of_its_owner, open_both, close_both)
{
    struct tenrec_tensor *keeps_the_region = make_private(MIB, 0);
    struct tenrec_tensor *t = make_private(MIB, 1), *got = carry(t);
    const void *here = bytes_of(t), *there = bytes_of(got);

    for (int i = 2; i < 6; i++) {
        memset(bytes_of(got), 99, MIB);
        tenrec_tensor_drop(t);
        tenrec_tensor_drop(got);
        sharing_collect(clock_now_ns());
        t = make_private(MIB, i);
        got = carry(t);
        assert_ptr_equal(bytes_of(t), here);
        assert_ptr_equal(bytes_of(got), there);
        assert_filled(got, i);
    }
    tenrec_tensor_drop(t);
    tenrec_tensor_drop(got);
    tenrec_tensor_drop(keeps_the_region);
}

TEST_WITH(sharing_private_goes_once, open_both, close_both)
{
    struct tenrec_tensor *t = make_private(MIB, 1), *got = carry(t);
    struct tenrec_share share;

    assert_false(sharing_share(owner, tenrec_tensor_desc(t), &share));
    tenrec_tensor_drop(t);
    tenrec_tensor_drop(got);
}

TEST_WITH(sharing_private_is_counted, open_both, close_both)
{
    struct tenrec_tensor *t = make_private(MIB, 1), *u = make(MIB, TENREC_SHARED, 1), *got;

    assert_int_equal(shared_memory_count().private_bytes, MIB);
    got = carry(t);
    tenrec_tensor_drop(t);
    assert_int_equal(shared_memory_count().private_bytes, MIB); /* it is still out */
    tenrec_tensor_drop(got);
    sharing_collect(clock_now_ns());
    assert_int_equal(shared_memory_count().private_bytes, 0);
    tenrec_tensor_drop(u);
}

/* Else the writer of one tensor could reach the other. */
TEST_WITH(sharing_private_is_apart_from_memory_lent_for_reading, open_both, close_both)
{
    struct tenrec_tensor *t = make_private(MIB, 1), *u = make(MIB, TENREC_SHARED, 2);
    struct tenrec_tensor *got[2] = { carry(t), carry(u) };

    assert_int_equal(shared_memory_count().regions, 2);
    assert_int_equal(mapping_count().regions, 2);
    assert_true(tenrec_tensor_desc(got[1])->flags & TENREC_TENSOR_READ_ONLY);
    for (int i = 0; i < 2; i++)
        tenrec_tensor_drop(got[i]);
    tenrec_tensor_drop(t);
    tenrec_tensor_drop(u);
}

TEST_WITH(sharing_private_regions_take_no_loans_to_be_read, open_both, close_both)
{
    struct tenrec_tensor *t = make_private(MIB, 1), *got = carry(t);
    struct tenrec_share share = { .size = sizeof share, .record = { RECORD_LENT, 0, 0, 0, 7 } };
    struct tenrec_tensor_desc d = { .bytes = 64 };
    tenrec_error err;

    assert_int_equal(sharing_shared(holder, &share, &d, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "region of the other kind");
    tenrec_tensor_drop(t);
    tenrec_tensor_drop(got);
}

/* A forked child keeps its memory unchanged. */
TEST_WITH(sharing_private_is_not_used_again_while_readable_by_a_child, open_both, close_both)
{
    struct tenrec_tensor *t = make_private(MIB, 1), *got = carry(t);
    const void *data = bytes_of(t);
    int talk[2], status;
    char byte = 0;
    pid_t child;

    assert_int_equal(pipe(talk), 0);
    tenrec_tensor_drop(t);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool same = true;
        close(talk[1]);
        same = read(talk[0], &byte, 1) == 1;
        for (size_t i = 0; i < MIB; i++)
            same = same && bytes_of(got)[i] == 1;
        tenrec_tensor_drop(got); /* is not the child's to give back */
        _exit(same ? 0 : 1);
    }
    memset(bytes_of(got), 50, 100); /* nor does it see this */
    tenrec_tensor_drop(got);
    sharing_collect(clock_now_ns());
    t = make_private(MIB, 2);
    assert_ptr_not_equal(bytes_of(t), data);
    assert_int_equal(write(talk[1], "x", 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(talk[0]);
    close(talk[1]);
    tenrec_tensor_drop(t);
    assert_int_equal(sharing_lent(), 1); /* until the connection ends */
}
