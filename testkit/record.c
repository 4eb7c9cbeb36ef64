/* SPDX-License-Identifier: Apache-2.0 */
#include "testkit/record.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

tenrec_status board_new(int32_t n, struct board **ret, tenrec_error *err)
{
    size_t bytes = sizeof(struct board) + (size_t)n * sizeof(struct record);
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct board *b = p;

    if (p == MAP_FAILED)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "%zu bytes for the workers' records",
                                 bytes);
    b->bytes = bytes;
    b->n = n;
    *ret = b;
    return TENREC_OK;
}

void board_drop(struct board *b)
{
    if (b)
        munmap(b, b->bytes);
}

void board_fail(struct board *b, int32_t rank)
{
    int none = 0;

    atomic_compare_exchange_strong(&b->failed, &none, rank + 1);
}

void board_end(struct board *b, int32_t rank, tenrec_status status, const tenrec_error *err)
{
    struct record *r = &b->worker[rank];

    r->status = status;
    if (status != TENREC_OK) {
        r->err = *err;
        r->err.code = status;
        board_fail(b, rank);
    }
    atomic_store(&r->phase, RECORD_ENDED);
}

bool board_all(const struct board *b, enum record_phase phase)
{
    for (int32_t i = 0; i < b->n; i++)
        if (atomic_load(&b->worker[i].phase) < (int)phase && !atomic_load(&b->worker[i].may_die))
            return false;
    return true;
}

const char *record_place(const struct record *r)
{
    static const char *const places[] = {
        [RECORD_SETUP] = "in its setup",
        [RECORD_INIT] = "in tenrec_init_rpc",
        [RECORD_BODY] = "in its body",
        [RECORD_WAIT] = "while waiting for the others",
        [RECORD_SHUTDOWN] = "in tenrec_shutdown",
        [RECORD_LEAKS] = "after its shutdown",
        [RECORD_ENDED] = "after its result",
    };

    return places[atomic_load(&r->phase)];
}
