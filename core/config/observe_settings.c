/* SPDX-License-Identifier: Apache-2.0 */
/* observe_settings.c - the keys of `observe:`, read into a struct. */
#include "core/config/settings.h"

#include "core/base/memory.h"
#include "core/config/state.h"

#include <stdlib.h>

struct observe_settings_made {
    struct arena arena;
    struct config_observe observe;
};

#define AT(field) offsetof(struct config_observe, field)
/* clang-format off */
static const struct tenrec_option table[] = {
    { "metrics", TENREC_OPT_STRING, 0, AT(metrics), 0, "", 0, 0, NULL,
      "Address at which Prometheus reads the metrics of all workers of the host, such as 127.0.0.1:9464 or "
      "unix:/run/tenrec/metrics.sock." },
    { "metrics_observer", TENREC_OPT_STRING, 0, AT(metrics_observer), 0, "", 0, 0, NULL,
      "Entry of `observers`, or plugin, that serves that address." },
    { "durations", TENREC_OPT_BOOL, 0, AT(durations), 0, "false", 0, 0, NULL,
      "Count calls and their durations by function and worker; `metrics` turns this on, too." },
    { "traces", TENREC_OPT_STRING, 0, AT(traces), 0, "", 0, 0, NULL,
      "Address of the OpenTelemetry collector that gets the spans of calls, such as http://collector:4318." },
    { "traces_observer", TENREC_OPT_STRING, 0, AT(traces_observer), 0, "", 0, 0, NULL,
      "Entry of `observers`, or plugin, that sends the spans." },
    { "traces_service", TENREC_OPT_STRING, 0, AT(traces_service), 0, "tenrec", 0, 0, NULL,
      "Name of the service in the spans (service.name)." },
    { "traces_ratio", TENREC_OPT_DOUBLE, 0, AT(traces_ratio), 0, "0.01", 0, 1, NULL,
      "Share of the new traces that is sampled, from 0 to 1. A call within a trace follows the trace." },
    { "recorder", TENREC_OPT_BOOL, 0, AT(recorder), 0, "false", 0, 0, NULL,
      "Record each call among the latest events of the process, which `tenrec dump` shows." },
    { "dump_dir", TENREC_OPT_STRING, 0, AT(dump_dir), 0, "", 0, 0, NULL,
      "Folder for a trace of these events, written when a worker is lost or a call takes longer than "
      "worker.stuck_after; at most one a minute." },
    { "stacks", TENREC_OPT_BOOL, 0, AT(stacks), 0, "true", 0, 0, NULL,
      "Interrupt the thread of a handler by a signal for its stack, in a dump and in a warning about the handler." },
};
/* clang-format on */

const struct tenrec_plugin observe_table = {
    TENREC_PLUGIN_HEADER,
    .name = "observe",
    TENREC_PLUGIN_OPTIONS(table, struct config_observe),
};

struct option_source observe_source(const struct tenrec_config *config)
{
    return (struct option_source){
        .map = node_get(config->root, "observe"),
        .env = &config->env,
        .top = "observe",
    };
}

static tenrec_status observe_fill(const struct option_source *src, struct config_observe **ret,
                                  tenrec_error *err)
{
    struct observe_settings_made *made = memory_new(1, sizeof *made);
    tenrec_status st;

    if (!made)
        return memory_fail(err);
    st = options_check_keys(&observe_table, src, NULL, err);
    if (st == TENREC_OK)
        st = options_fill(&observe_table, src, &made->arena, &made->observe, err);
    if (st == TENREC_OK)
        *ret = &made->observe;
    else
        config_observe_drop(&made->observe);
    return st;
}

tenrec_status config_observe_make(const struct tenrec_config *config, struct config_observe **ret,
                                  tenrec_error *err)
{
    const struct option_source src = observe_source(config);

    return observe_fill(&src, ret, err);
}

tenrec_status config_observe_default(struct config_observe **ret, tenrec_error *err)
{
    return observe_fill(&(struct option_source){ .top = "observe" }, ret, err);
}

void config_observe_drop(struct config_observe *observe)
{
    struct observe_settings_made *made;

    if (!observe)
        return;
    made =
        (struct observe_settings_made *)(void *)((char *)observe -
                                                 offsetof(struct observe_settings_made, observe));
    arena_finish(&made->arena);
    free(made);
}
