/* SPDX-License-Identifier: Apache-2.0 */
#include "asker.h"

#include <inttypes.h>

#define SAY_NS UINT64_C(1000000000) /* an outage that lasts so long is logged */

uint64_t asker_answer_ns(uint64_t deadline_ns)
{
    return clock_later_ms(deadline_ns, 80); /* of 100 ms */
}

tenrec_status asker_contest(struct backoff *gap, uint64_t deadline_ns, tenrec_error *err)
{
    const uint64_t us = backoff_next_us(gap, clock_now_ns(), CLOCK_NEVER);

    backoff_us(us / 2 + clock_now_ns() % us);
    return clock_passed(asker_answer_ns(deadline_ns))
               ? tenrec_fail(err, TENREC_ETIMEDOUT, "others change the key all the time")
               : TENREC_OK;
}

void asker_move(struct asker *a, uint32_t from)
{
    atomic_compare_exchange_strong(&a->endpoint, &from, (from + 1) % a->n_endpoints);
}

/* Once for each outage. */
static void asker_tell(struct asker *a, const tenrec_error *why)
{
    if (!atomic_exchange(&a->is_out, true))
        a->self->host->log(a->self, TENREC_LOG_WARN, "%s does not answer, and is tried again: %s",
                           a->name, why->text);
}

static tenrec_status asker_fail(const struct asker *a, enum http_end end, tenrec_error *why,
                                const char *more, uint64_t since, tenrec_error *err)
{
    if (end == HTTP_LATE && !*why->text)
        tenrec_fail(why, TENREC_ETIMEDOUT, "the server does not answer");
    if (why->code == TENREC_ECONNECT && a->is_open)
        why->code = TENREC_EPEER_LOST;
    if (err)
        *err = *why;
    /* The prefix below does not apply to a refusal. */
    if (end != HTTP_NEVER)
        tenrec_error_prefix(err, "no answer for %" PRIu64 " ms%s",
                            (clock_now_ns() - since) / 1000000u, more);
    return why->code;
}

tenrec_status asker_run(struct asker *a, asker_once_fn *once, void *arg, bool *lost,
                        uint64_t deadline_ns, tenrec_error *err)
{
    const uint64_t since = clock_now_ns();
    struct backoff gap = { ASKER_GAP_US, ASKER_GAP_MOST_US };
    bool sent, unknown = false;
    tenrec_error why = { 0 };
    enum http_end end;

    deadline_ns = asker_answer_ns(deadline_ns);
    for (uint32_t failed = 0;;) {
        const uint32_t endpoint = atomic_load(&a->endpoint);
        sent = false;
        end = once(arg, endpoint, deadline_ns, &sent, &why);
        unknown |= sent;
        if (end == HTTP_OK) {
            atomic_store(&a->is_out, false);
            break;
        }
        if (end == HTTP_AGAIN || end == HTTP_LATE)
            asker_move(a, endpoint);
        if (end != HTTP_AGAIN)
            break;
        if (clock_now_ns() - since > SAY_NS)
            asker_tell(a, &why);
        if (++failed % a->n_endpoints == 0 && !backoff_take(&gap, deadline_ns))
            break;
        if (clock_passed(deadline_ns))
            break;
    }
    atomic_store(&a->reached, end == HTTP_OK);
    if (lost)
        *lost |= unknown;
    return end == HTTP_OK ? TENREC_OK
                          : asker_fail(a, end, &why,
                                       lost && unknown ? ", and the change may have been made" : "",
                                       since, err);
}
