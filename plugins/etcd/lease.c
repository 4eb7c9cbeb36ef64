/* SPDX-License-Identifier: Apache-2.0 */
/* lease.c - the lease of etcd that all keys of a store have. */
#include "etcd.h"

#include <inttypes.h>

tenrec_status lease_grant(struct etcd_store *s, uint64_t lease_ms, uint64_t deadline_ns,
                          int64_t *ret, tenrec_error *err)
{
    char seconds[24];
    json_t *request, *answer;
    tenrec_status st;

    *ret = 0;
    if (!lease_ms)
        return TENREC_OK;
    snprintf(seconds, sizeof seconds, "%" PRIu64, (lease_ms + 999) / 1000);
    request = json_pack("{s:s}", "TTL", seconds);
    st = etcd_ask(s, "lease/grant", request, NULL, deadline_ns, &answer, err);
    json_decref(request);
    if (st != TENREC_OK)
        return st;
    *ret = answer_number(answer, "ID");
    json_decref(answer);
    return *ret ? TENREC_OK : tenrec_fail(err, TENREC_EPROTOCOL, "the server granted no lease");
}

void lease_revoke(struct etcd_store *s, int64_t lease, uint64_t deadline_ns)
{
    char id[24];
    json_t *request, *answer;

    snprintf(id, sizeof id, "%" PRId64, lease);
    request = json_pack("{s:s}", "ID", id);
    if (etcd_ask(s, "lease/revoke", request, NULL, deadline_ns, &answer, NULL) == TENREC_OK)
        json_decref(answer);
    json_decref(request);
}

tenrec_status lease_renew(struct etcd_store *s, uint64_t deadline_ns, bool *ret, tenrec_error *err)
{
    char id[24];
    json_t *request, *answer;
    tenrec_status st;

    *ret = true;
    if (!s->lease)
        return TENREC_OK;
    snprintf(id, sizeof id, "%" PRId64, s->lease);
    request = json_pack("{s:s}", "ID", id);
    st = etcd_ask(s, "lease/keepalive", request, NULL, deadline_ns, &answer, err);
    json_decref(request);
    if (st != TENREC_OK)
        return st;
    *ret = answer_number(json_object_get(answer, "result"), "TTL") > 0;
    json_decref(answer);
    return TENREC_OK;
}

tenrec_status lease_keep(void *store, tenrec_error *err)
{
    bool exists;
    tenrec_status st = lease_renew(store, clock_deadline_ms(KEEPER_CALL_MS), &exists, err);

    return st == TENREC_OK && !exists ? answer_lost(err) : st;
}
