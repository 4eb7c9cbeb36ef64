/* SPDX-License-Identifier: Apache-2.0 */
/* pull_source.c - where a pull reads from: what the keeper answers, and another reader's memory. */
#include "rpc/weights/pull.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "rpc/call/call.h"
#include "rpc/weights/record.h"

#include <stdlib.h>
#include <string.h>

enum {
    STALL_MS = 2000, /* a source that gives nothing for so long may be replaced */
};

uint64_t pull_before_stall(const struct pull *p)
{
    const uint64_t left = (uint64_t)handle_left_ms(p->until_ns);
    const uint64_t part = left / (p->source_number ? 4 : 2);
    const uint64_t until = clock_deadline_ms(part > STALL_MS ? part : STALL_MS);

    return until < p->until_ns ? until : p->until_ns;
}

/* ---- the keeper's answer ------------------------------------------------------------ */

void pull_forget(struct pull *p)
{
    piece_plan_finish(&p->plan);
    sums_finish(&p->sums);
    free(p->refs);
    free(p->have);
    tenrec_value_drop(p->answer);
    p->refs = NULL;
    p->have = NULL;
    p->answer = NULL;
}

/* Reads the pieces of all publishers. */
static tenrec_status pull_read_pieces(struct pull *p, const struct tenrec_value *parts,
                                      tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    p->n_have = 0;
    for (size_t i = 0; i < parts->n && st == TENREC_OK; i++) {
        struct piece *one, *all;
        size_t n;
        st = pieces_unpack(&parts->u.array[i], &one, &n, err);
        if (st != TENREC_OK)
            break;
        all = memory_resize(p->have, p->n_have + n + 1, sizeof *all);
        if (all) {
            memcpy(all + p->n_have, one, n * sizeof *one);
            p->have = all;
            p->n_have += n;
        } else {
            st = memory_fail(err);
        }
        free(one);
    }
    return st;
}

tenrec_status pull_ask(struct pull *p, int64_t version, const char *failed, int64_t *ret_version,
                       tenrec_error *err)
{
    const struct tenrec_value args[] = {
        tenrec_value_int(version),
        tenrec_value_int(p->after),
        tenrec_value_int(p->digest),
        tenrec_value_int(handle_left_ms(p->until_ns)),
        tenrec_value_text(failed ? failed : ""),
        tenrec_value_int(failed ? p->source_number : 0),
        tenrec_value_bool(p->publisher_failures >= PULL_TRIES),
    };
    struct tenrec_value *answer;
    const struct tenrec_value *parts;
    tenrec_status st =
        handle_ask(p->s, RECORD_PULL, p->h->number, args, 7, p->until_ns, &answer, err);

    if (st != TENREC_OK)
        return st;
    pull_forget(p);
    p->answer = answer;
    if (answer->type != TENREC_VALUE_ARRAY)
        return tenrec_fail(err, TENREC_EPROTOCOL, "the keeper's answer is no array");
    st = tenrec_value_unpack(answer->u.array, answer->n, err, "isiv", ret_version, &p->source,
                             &p->source_number, &parts);
    if (st == TENREC_OK && parts->type != TENREC_VALUE_ARRAY)
        st = tenrec_fail(err, TENREC_EPROTOCOL, "the keeper's answer has no pieces");
    return st == TENREC_OK ? pull_read_pieces(p, parts, err) : st;
}

/* ---- a source ----------------------------------------------------------------------- */

tenrec_status pull_ask_source(struct pull *p, uint64_t bytes, bool refs, struct tenrec_future **ret,
                              tenrec_error *err)
{
    const struct tenrec_call_options o = { .size = sizeof o,
                                           .timeout_ms = handle_left_ms(pull_before_stall(p)) };
    const struct tenrec_value args[] = { tenrec_value_int(p->source_number),
                                         tenrec_value_int((int64_t)bytes),
                                         tenrec_value_bool(refs) };

    return call_async_unscoped(p->s->w, p->source, EDITION_READ, args, 3, false, &o, ret, err);
}

tenrec_status pull_read_refs(struct pull *p, tenrec_error *err)
{
    const size_t bytes = p->n * sizeof *p->refs;
    struct tenrec_future *f = NULL;
    const struct tenrec_value *v;
    tenrec_status st = pull_ask_source(p, 0, true, &f, err);

    if (st == TENREC_OK)
        st = tenrec_future_wait(f, TENREC_TIMEOUT_NONE, err);
    v = st == TENREC_OK ? tenrec_future_value(f) : NULL;
    p->refs = v ? memory_new(p->n, sizeof *p->refs) : NULL;
    if (v && !p->refs)
        st = memory_fail(err);
    else if (v && (v->type != TENREC_VALUE_BYTES || v->n != bytes))
        st = tenrec_fail(err, TENREC_EPROTOCOL, "'%s' has not the same boxes", p->source);
    else if (v)
        memcpy(p->refs, v->u.bytes, bytes);
    tenrec_future_drop(f);
    return st;
}
