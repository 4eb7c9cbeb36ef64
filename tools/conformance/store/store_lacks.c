/* SPDX-License-Identifier: Apache-2.0 */
/* store_lacks.c - what a store says that it lacks, it refuses; and its keys expire unless it lacks
 * that. */
#include "conformance/store/store_clients.h"

#include "core/base/clock.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define LEASE_MOST_MS 3000 /* for which a case waits */

STORE_CASE(what_a_store_lacks_is_refused, "ST-20")
{
    const uint32_t lacks = clients_lack();
    const struct store_value v = { (char[]){ "v" }, 1 };
    char *bytes;
    tenrec_error err;

    if (!(lacks & (TENREC_STORE_LACKS_COMPARE | TENREC_STORE_LACKS_LARGE)))
        expect_not_offered("a store that lacks an operation");
    if (lacks & TENREC_STORE_LACKS_COMPARE) {
        expect_error(store_add(one, "n", 1, soon(), NULL, &err), TENREC_EUNSUPPORTED, &err, "add");
        expect_error(store_compare_set(one, "n", &v, &v, soon(), NULL, &err), TENREC_EUNSUPPORTED,
                     &err, "compare_set");
    }
    if (lacks & TENREC_STORE_LACKS_LARGE) {
        expect_here(bytes = calloc(1, TENREC_STORE_MAX_VALUE));
        expect_error(store_set(one, "large", bytes, TENREC_STORE_MAX_VALUE, soon(), &err),
                     TENREC_ETOOBIG, &err, "set of a large value");
        expect(!has(two, "large"), "a value that was refused is kept");
        free(bytes);
    }
}

/* The option `lease` of the plugin; UINT64_MAX if it has none. */
static uint64_t lease_ms(void)
{
    struct stores_choice choice;

    if (!clients_choice(&choice))
        return UINT64_MAX;
    for (uint32_t i = 0; i < choice.plugin->n_options; i++) {
        const struct tenrec_option *o = &choice.plugin->options[i];
        if (strcmp(o->key, "lease") == 0 && o->type == TENREC_OPT_DURATION)
            return *(const uint64_t *)((const char *)choice.options + o->offset);
    }
    return UINT64_MAX;
}

STORE_CASE(keys_expire_when_no_client_is_left, "ST-20")
{
    const uint64_t lease = lease_ms();

    clients_need(TENREC_STORE_LACKS_EXPIRY, "keys that expire");
    if (lease > LEASE_MOST_MS)
        expect_not_offered("an option 'lease' of at most 3 s");
    put(one, "k", "v");
    clients_close(&one);
    clients_close(&two);
    poll(NULL, 0, (int)lease * 4); /* a look would renew the lease */
    one = clients_open();
    expect_of("ST-20");
    expect(!has(one, "k"), "a key exists four leases after the last client has closed");
    expect_of(NULL);
}
