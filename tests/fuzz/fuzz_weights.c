/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_weights.c - requests of members to the keeper of a set and to a source, and the boxes that
 * others publish.
 *
 * Input: steps. A step is a request, whose arguments are right by default; time that passes; or
 * pieces of a publisher, of which a plan for the boxes of a reader is made. The bytes of a plan are
 * within the box and within what the publisher says of its region. */
#include "amplification.h"
#include "fake_worker.h"

#include "core/tensor/tensor.h"
#include "rpc/call/call.h"
#include "rpc/value/codec.h"
#include "rpc/weights/edition.h"
#include "rpc/weights/piece.h"
#include "rpc/weights/record.h"

enum { STEPS_MAX = 60, ARGS_MAX = 12, PIECES_MAX = 3, DIMS_MAX = 3 };

/* ---- pieces --------------------------------------------------------------------------- */

/* Small numbers, mostly; and others. */
static int64_t extent_take(struct fuzz_input *in)
{
    const uint8_t b = (uint8_t)fuzz_take(in, 1);

    return b < 0xf0 ? b % 6 : INT64_MAX >> (b & 15) * 4;
}

static struct piece piece_take(struct fuzz_input *in)
{
    static const char *const name[] = { "a", "b" };
    const uint8_t how = (uint8_t)fuzz_take(in, 1);
    struct piece p = { .name = name[how & 1],
                       .dtype = how & 2 ? TENREC_FLOAT32 : TENREC_UINT8,
                       .ndim = (how >> 2) % (DIMS_MAX + 1),
                       .ref = { .size = sizeof p.ref, .rights = 1, .owner = "worker1" } };

    for (uint32_t i = 0; i < p.ndim; i++) {
        p.shape[i] = extent_take(in);
        p.at[i] = how & 0x10 ? extent_take(in) : 0;
        p.extent[i] = how & 0x20 ? extent_take(in) : p.shape[i];
    }
    return p;
}

/* ret: owns; the pieces of a publisher as they travel, of which a byte may be spoilt. */
static struct tenrec_value *pieces_take(struct fuzz_input *in)
{
    const uint8_t how = (uint8_t)fuzz_take(in, 1);
    struct piece p[PIECES_MAX] = { { 0 } };
    const size_t n = how % (PIECES_MAX + 1);
    struct tenrec_value *v;

    for (size_t i = 0; i < n; i++)
        p[i] = piece_take(in);
    v = pieces_pack(p, n);
    fuzz_expect(v != NULL);
    if ((how & 0x80) && n > 0) {
        const struct tenrec_value *bytes = &v->u.array[1];
        ((unsigned char *)(uintptr_t)bytes->u.bytes)[fuzz_take(in, 2) % bytes->n] ^=
            (unsigned char)fuzz_take(in, 1);
    }
    if ((how & 0x40) && n > 0)
        v->n--;
    return v;
}

static void plan_check(const struct piece_plan *plan, const struct piece *want, size_t n)
{
    for (size_t i = 0; i < plan->n; i++) {
        const struct piece_run *run = &plan->run[i];
        fuzz_expect(run->want < n && run->bytes > 0);
        fuzz_expect(run->to <= want[run->want].bytes &&
                    run->bytes <= want[run->want].bytes - run->to);
        fuzz_touch(run->ref, sizeof *run->ref);
    }
}

/* A box with more rows than that makes a plan of as many runs. */
static bool piece_is_small(const struct piece *p)
{
    int64_t n = 1;

    for (uint32_t i = 0; i < p->ndim; i++) {
        if (p->extent[i] < 0 || p->extent[i] > 8)
            return false;
        n *= p->extent[i];
    }
    return n <= 512;
}

static void plan_make(struct fuzz_input *in)
{
    const uint8_t how = (uint8_t)fuzz_take(in, 1);
    struct tenrec_value *wanted = pieces_take(in), *published = pieces_take(in);
    struct piece *want = NULL, *have = NULL;
    struct piece_plan plan = { 0 };
    size_t n_want = 0, n_have = 0;
    tenrec_error why;
    bool fits = pieces_unpack(wanted, &want, &n_want, &why) == TENREC_OK &&
                pieces_unpack(published, &have, &n_have, &why) == TENREC_OK;

    for (size_t i = 0; fits && i < n_want; i++) /* the program's own */
        fits = piece_is_small(&want[i]);
    if (fits && piece_plan_make(&plan, want, n_want, have, n_have, &why) == TENREC_OK)
        plan_check(&plan, want, n_want);
    if (fits && n_want && pieces_digest(want, n_want) == how)
        fuzz_touch(want, sizeof *want);
    piece_plan_finish(&plan);
    free(have);
    free(want);
    free(published);
    free(wanted);
}

/* ---- requests ------------------------------------------------------------------------- */

struct asked_request {
    const char *function;
    const char *form; /* of the arguments after the common ones */
};

static const struct asked_request requests[] = {
    { RECORD_PUBLISH, "iip" }, { RECORD_PULL, "iiiisib" }, { RECORD_DONE, "i" },
    { RECORD_REPORT, "iis" },  { RECORD_WAIT, "ii" },      { RECORD_LEAVE, "" },
    { EDITION_READ, "iib" },
};

static struct tenrec_value argument_take(struct fuzz_input *in, char form,
                                         struct tenrec_value **pieces)
{
    static const char *const text[] = { "", "worker0", "worker1", "worker2" };
    const uint8_t b = (uint8_t)fuzz_take(in, 1);

    if (b == 0xff) /* of another type */
        form = form == 'i' ? 's' : 'i';
    switch (form) {
    case 's':
        return tenrec_value_text(text[b & 3]);
    case 'b':
        return tenrec_value_bool(b & 1);
    case 'p':
        if (!*pieces)
            *pieces = pieces_take(in);
        return **pieces;
    default:
        return tenrec_value_int(b < 0xf0 ? b & 7 : INT64_MAX >> (b & 15) * 4);
    }
}

static size_t arguments_take(struct fuzz_input *in, const struct asked_request *r,
                             struct tenrec_value *args, struct tenrec_value **pieces)
{
    const bool common = strcmp(r->function, EDITION_READ) != 0;
    const uint8_t how = (uint8_t)fuzz_take(in, 1);
    size_t n = 0;

    if (common) {
        args[n++] = tenrec_value_text(how & 1 ? "set" : "other");
        for (size_t i = 1; i < 4; i++) /* life, handle, number */
            args[n++] = tenrec_value_int((how >> i * 2) & 3);
    }
    for (const char *form = r->form; *form; form++)
        args[n++] = argument_take(in, *form, pieces);
    return how == 0xff && n ? n - 1 : n;
}

static void request_arrives(struct fuzz_input *in)
{
    const uint8_t what = (uint8_t)fuzz_take(in, 1);
    const struct asked_request *r = &requests[(what >> 2) % (sizeof requests / sizeof requests[0])];
    const tenrec_peer from = (what & 3) == 3 ? TENREC_ANONYMOUS : (tenrec_peer)(what & 3);
    struct tenrec_value args[ARGS_MAX], *pieces = NULL;
    const size_t n = arguments_take(in, r, args, &pieces), n_messages = fake.n_messages;
    const struct codec_extra none = { NULL };
    struct tenrec_msg *msg;
    size_t len;

    fuzz_expect(codec_write_call(TENREC_MSG_CALL, r->function, args, n, 1000, &none, &msg, NULL) ==
                TENREC_OK);
    free(pieces);
    msg->id = what;
    msg->route = (struct tenrec_route){ (uint64_t)(what & 3), 1 };
    len = (size_t)msg->payload_len;
    fuzz_measure();
    worker_deliver(&fake.worker, from, msg);
    fuzz_made.steps = fake.n_messages - n_messages;
    fuzz_expect_made(len, (struct fuzz_bound){ 1000, 1 << 20 },
                     (struct fuzz_bound){ 1, STEPS_MAX });
}

/* ---- a run ---------------------------------------------------------------------------- */

static void step(struct fuzz_input *in)
{
    const uint8_t what = (uint8_t)fuzz_take(in, 1);

    if (what % 4 == 0)
        plan_make(in);
    else if (what % 16 == 1)
        fake.now_ns += (uint64_t)fuzz_take(in, 1) * 10000000u;
    else
        request_arrives(in);
}

static void keeper_end(void)
{
    tenrec_error why;

    tenrec_fail(&why, TENREC_ESHUTDOWN, "the keeper shuts down");
    record_stop(record_of(&fake.worker), &why);
    editions_stop(editions_of(&fake.worker), &why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct fuzz_input in = { data, len };

    fake_worker_make(false);
    record_of(&fake.worker)->stopped = false;
    fuzz_expect(record_serve(&fake.calls.functions, NULL) == TENREC_OK &&
                edition_serve(&fake.calls.functions, NULL) == TENREC_OK);
    for (int i = 0; in.len && i < STEPS_MAX; i++)
        step(&in);
    keeper_end();
    fake_worker_end();
    return 0;
}
