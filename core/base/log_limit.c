/* SPDX-License-Identifier: Apache-2.0 */
/* log_limit.c - a token bucket per reason. */
#include "core/base/log.h"

#include <string.h>

#define SECOND_NS 1000000000u

/* Returns the entry of the reason, or the entry that was idle for longest. */
static struct log_reason *reason_find(struct log_limit *l, const void *format, const char *part)
{
    struct log_reason *oldest = &l->reason[0];

    for (size_t i = 0; i < LOG_LIMIT_REASONS; i++) {
        struct log_reason *r = &l->reason[i];
        if (r->format == format && strcmp(r->last.part, part) == 0)
            return r;
        if (oldest->format && (!r->format || r->filled_ns < oldest->filled_ns))
            oldest = r;
    }
    oldest->format = NULL;
    return oldest;
}

static void reason_fill(struct log_reason *r, uint64_t now_ns)
{
    uint64_t seconds = (now_ns - r->filled_ns) / SECOND_NS;

    if (seconds >= LOG_LIMIT_BURST - r->tokens) {
        r->tokens = LOG_LIMIT_BURST;
        r->filled_ns = now_ns;
    } else {
        r->tokens += (uint32_t)seconds;
        r->filled_ns += seconds * SECOND_NS;
    }
}

bool log_limit_admit(struct log_limit *l, const void *format, struct log_record *line,
                     uint64_t now_ns)
{
    struct log_reason *r = reason_find(l, format, line->part);

    if (!r->format) {
        r->format = format;
        r->tokens = LOG_LIMIT_BURST;
        r->filled_ns = now_ns;
        r->last = *line;
        r->last.left_out = 0;
    }
    reason_fill(r, now_ns);
    line->left_out = r->last.left_out;
    r->last.left_out = r->tokens > 0 ? 0 : r->last.left_out + 1;
    if (r->tokens == 0) {
        memcpy(r->last.text, line->text, sizeof r->last.text);
        return false;
    }
    r->tokens--;
    return true;
}

bool log_limit_take(struct log_limit *l, bool all, uint64_t now_ns, struct log_record *ret)
{
    for (size_t i = 0; i < LOG_LIMIT_REASONS; i++) {
        struct log_reason *r = &l->reason[i];
        if (!r->format || r->last.left_out == 0)
            continue;
        reason_fill(r, now_ns);
        if (!all && r->tokens == 0)
            continue;
        r->tokens -= r->tokens > 0;
        *ret = r->last;
        ret->left_out--; /* the line that is printed beside the count */
        r->last.left_out = 0;
        return true;
    }
    return false;
}
