/* SPDX-License-Identifier: Apache-2.0 */
/* sharing_words_test.c - memory that is lent, with each word of a release page changed just
 * before each load of it (support/words.h). */
#include "../support/words.h"
#include "../testing.h"
#include "sharing_pair.h"

#include "core/base/clock.h"
#include "core/tensor/release_page.h"
#include "core/tensor/sharing.h"

#define TENSORS                                                                                    \
    66 /* so many loans that lending collects, and that take two words of the release page         \
        */

/* Whatever the release page says, each block comes back once, and at the end all have. */
static void sharing_scenario(void)
{
    struct tenrec_tensor *t[TENSORS], *got[TENSORS];

    open_both();
    for (int i = 0; i < TENSORS; i++)
        t[i] = make(64, TENREC_SHARED, i);
    for (int i = 0; i < TENSORS; i++)
        got[i] = carry(t[i]);
    for (int i = 0; i < TENSORS; i += 2)
        tenrec_tensor_drop(got[i]);
    sharing_collect(clock_now_ns());
    for (int i = 0; i < TENSORS; i++)
        tenrec_tensor_drop(t[i]);
    for (int i = 1; i < TENSORS; i += 2)
        tenrec_tensor_drop(got[i]);
    sharing_collect(clock_now_ns());
    close_both();
}

TEST(sharing_returns_each_loan_once_when_a_holder_writes_between_loads)
{
    assert_true(words_try(sharing_scenario, RELEASE_PAGE_SLOTS) > 20);
}
