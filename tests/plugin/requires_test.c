/* SPDX-License-Identifier: Apache-2.0 */
/* TENREC_REQUIRES, on both tables of services. */
#include "../testing.h"
#include "short_table.h"

#include <tenrec/store_plugin.h>

#define HOLD_AT ((uint32_t)offsetof(struct tenrec_host, hold))

static tenrec_status hold(struct tenrec_agent *self, uint64_t due_ns, bool sends,
                          void (*fn)(void *arg), void *arg)
{
    (void)self, (void)due_ns, (void)sends, (void)fn, (void)arg;
    return TENREC_OK;
}

static tenrec_status require_hold(const struct tenrec_host *host, tenrec_error *err)
{
    return TENREC_REQUIRES(host, hold, err);
}

TEST(requires_is_ok_with_the_service)
{
    const struct tenrec_host host = { .size = sizeof host, .hold = hold };
    tenrec_error err = { .text = "untouched" };

    assert_int_equal(require_hold(&host, &err), TENREC_OK);
    assert_string_equal(err.text, "untouched");
}

TEST(requires_names_the_service_and_both_versions)
{
    const struct tenrec_host host = {
        .size = sizeof host, .abi_major = 7, .abi_minor = 3, .hold = NULL
    };
    char text[160];
    tenrec_error err;

    snprintf(text, sizeof text,
             "this core (plugin ABI 7.3) lacks the service 'hold' that the plugin (ABI %d.%d) "
             "requires: use a newer Tenrec, or an older plugin",
             TENREC_ABI_MAJOR, TENREC_ABI_MINOR);
    assert_int_equal(require_hold(&host, &err), TENREC_EABI);
    assert_int_equal(err.code, TENREC_EABI);
    assert_string_equal(err.text, text);
    assert_int_equal(require_hold(&host, NULL), TENREC_EABI);
}

TEST(requires_reads_nothing_behind_the_table)
{
    const struct tenrec_host whole = { .size = sizeof whole, .hold = hold };
    tenrec_error err;

    for (uint32_t size = 16; size <= HOLD_AT; size += 8) {
        struct tenrec_host *host = short_table_new(&whole, size);
        assert_int_equal(require_hold(host, &err), TENREC_EABI);
        short_table_drop(host);
    }
}

TEST(requires_works_for_the_host_of_stores)
{
    const struct tenrec_store_host whole = { .size = sizeof whole, .abi_major = 1 };
    struct tenrec_store_host *host =
        short_table_new(&whole, (uint32_t)offsetof(struct tenrec_store_host, log));
    tenrec_error err;

    assert_int_equal(TENREC_REQUIRES(host, log, &err), TENREC_EABI);
    assert_text_has(err.text, "lacks the service 'log'");
    short_table_drop(host);
}
