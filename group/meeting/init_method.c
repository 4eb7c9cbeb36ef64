/* SPDX-License-Identifier: Apache-2.0 */
#include "group/meeting/launch.h"

#include "core/base/memory.h"
#include "core/config/config.h"
#include "group/membership/membership.h"

#include <stdlib.h>
#include <string.h>

static tenrec_status read_query(char *query, struct init_method *ret, tenrec_error *err)
{
    tenrec_status st;
    int64_t n;
    char *save, *item;

    for (item = strtok_r(query, "&", &save); item; item = strtok_r(NULL, "&", &save)) {
        if (strcmp(item, "rank=host") == 0) {
            ret->rank = INIT_RANK_OF_HOST;
        } else if (strncmp(item, "rank=", 5) == 0) {
            if ((st = launch_number("rank", item + 5, 0, RANKS_MAX - 1, &n, err)) != TENREC_OK)
                return st;
            ret->rank = (int32_t)n;
        } else if (strncmp(item, "world_size=", 11) == 0) {
            if ((st = launch_number("world_size", item + 11, 1, RANKS_MAX, &n, err)) != TENREC_OK)
                return st;
            ret->world = (int32_t)n;
        } else if (ret->kind == INIT_MEMORY && strncmp(item, "host=", 5) == 0) {
            ret->host = item + 5;
        } else {
            return tenrec_fail(err, TENREC_EINVAL, "\"%.40s\" is neither rank= nor world_size=%s",
                               item, ret->kind == INIT_MEMORY ? " nor host=" : "");
        }
    }
    return TENREC_OK;
}

tenrec_status init_method_read(const char *text, struct init_method *ret, tenrec_error *err)
{
    static const struct {
        const char *scheme;
        int kind;
    } kinds[] = { { "env://", INIT_ENV },
                  { "tcp://", INIT_TCP },
                  { "file://", INIT_FILE },
                  { "memory://", INIT_MEMORY } };
    const size_t n = sizeof kinds / sizeof kinds[0];
    size_t i, len = 0, other = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    char *query;

    *ret = (struct init_method){ .rank = -1, .world = -1, .kind = INIT_OTHER };
    for (i = 0; i < n && strncmp(text, kinds[i].scheme, strlen(kinds[i].scheme)) != 0; i++)
        ;
    if (i < n) {
        ret->kind = kinds[i].kind;
        len = strlen(kinds[i].scheme);
    } else if (other == 0 || strncmp(text + other, "://", 3) != 0) {
        return tenrec_fail(err, TENREC_EINVAL,
                           "expected env://, tcp://host:port, file://path, memory://name or "
                           "PLUGIN://...");
    }
    if (!(ret->text = memory_text(text + len)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for init_method");
    if (!(query = strchr(ret->text, '?')))
        return TENREC_OK;
    *query = '\0';
    return read_query(query + 1, ret, err);
}

void init_method_finish(struct init_method *m)
{
    free(m->text);
    m->text = NULL;
}

void init_method_blame(const char *label, const char *text, tenrec_error *err)
{
    char *masked = secret_mask(text);

    secret_scrub(err, text);
    tenrec_error_prefix(err, "%s \"%.80s\"", label, masked ? masked : "");
    free(masked);
}
