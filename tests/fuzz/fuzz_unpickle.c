/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_unpickle.c - pickles of a hostile member of torch's group, and the values made of them. */
#include "amplification.h"

#include "torch/member/pickler.h"
#include "torch/member/pyobject.h"

/* What a value refers to must be readable; what is written of it is read again, and is not much
 * longer than the value. */
static void written_is_read(const struct tenrec_value *v, size_t budget)
{
    struct pickler p = { .jit = false };
    struct arena arena = { NULL };
    const struct pyobject *o;

    pickler_begin(&p);
    pickler_value(&p, v);
    pickler_end(&p);
    if (p.status == TENREC_OK && !p.out.failed) {
        fuzz_touch(p.out.data, p.out.len);
        fuzz_expect(p.out.len <= budget);
        unpickle(p.out.data, p.out.len, &arena, &o, NULL);
    }
    arena_finish(&arena);
    pickler_finish(&p);
}

typedef tenrec_status unpickle_fn(const void *data, size_t len, struct arena *arena,
                                  const struct pyobject **ret, tenrec_error *err);

static void reads(unpickle_fn *read, const uint8_t *data, size_t len)
{
    struct arena arena = { NULL };
    const struct pyobject *o;
    struct tenrec_value v;
    const struct pyobject_source from = { .bytes = len };
    /* Objects, then values with what each array of them takes beside it. */
    const struct fuzz_bound bytes = { 3 * PYOBJECT_BYTES_EACH, 3 * PYOBJECT_BYTES_MORE };
    tenrec_error err;
    tenrec_status st;

    fuzz_measure();
    st = read(data, len, &arena, &o, &err);
    fuzz_expect((st == TENREC_OK) == (o != NULL));
    if (st == TENREC_OK)
        st = pyobject_value(o, &arena, &from, &v, &err);
    fuzz_expect_made(len, bytes, (struct fuzz_bound){ 0, 0 });
    if (st == TENREC_OK)
        written_is_read(&v, pyobject_budget(len));
    arena_finish(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    reads(unpickle, data, len);
    reads(unpickle_jit, data, len);
    return 0;
}
