/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plugin/plugin.h"

#include "../testing.h"
#include "core/config/config.h"

#include <stdlib.h>
#include <tenrec/config.h>

TEST(stack_entry_out_of_the_chain_is_loaded_on_its_own)
{
    struct config_layer *entry;
    struct plugin *b = NULL;
    void *options = NULL;
    size_t n;
    struct tenrec_config *config;
    tenrec_error err;

    assert_status(tenrec_config_parse("backend: a\nbackends:\n  a: { plugin: echo }\n"
                                      "  spare: { plugin: nosuch }\n",
                                      "test.yaml", &config, &err),
                  &err);
    assert_status(config_entries(config, SECTION_BACKENDS, &entry, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_int_equal(plugin_entry_load(&entry[1], &b, &options, &err), TENREC_EPLUGIN);
    assert_text_has(err.text, "test.yaml:4:20: backend 'spare': no plugin 'nosuch'");
    assert_null(b);
    assert_null(options);
    free(entry);
    tenrec_config_drop(config);
}
