/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/config.h - the configuration of workers: backends and their options.
 *
 * A configuration has four sources: defaults, one YAML file, the environment (TENREC_BACKEND,
 * TENREC_WORKER__<KEY>, TENREC_BACKENDS__<NAME>__<OPTION> ...), and the program. Later sources
 * override earlier ones. Each value keeps its place, which each error names: "cluster.yaml:9:3:
 * ...".
 *
 * threads: concurrent reads are safe; modification requires exclusive access.
 */
#ifndef TENREC_CONFIG_H
#define TENREC_CONFIG_H

#include <tenrec/error.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct tenrec_config;

/* Reads a YAML file and the environment.
 *
 * path     NULL for the file named by TENREC_CONFIG and, where that is not
 *          set, for the built-in text (config/default.yaml)
 * ret      the caller owns it; tenrec_config_drop
 * errors   ECONFIG with file:line:column or the variable's name, EOS when the
 *          file cannot be read, ENOMEM
 * threads  any; reads the environment
 */
tenrec_status tenrec_config_load(const char *path, struct tenrec_config **ret, tenrec_error *err);

/* The same from a text in memory.
 *
 * text     YAML, borrowed during the call
 * name     stands for the file in errors; NULL for "text"
 */
tenrec_status tenrec_config_parse(const char *text, const char *name, struct tenrec_config **ret,
                                  tenrec_error *err);

/* Sets one value, which overrides file and environment, and checks it as if it were written
 * there. A failure changes nothing.
 *
 * key      "worker.rpc_timeout", "backend", "backends.tensorpipe.options.progress";
 *          missing maps on the path are created
 * value    as in YAML, without quotes: "60s", "[uv, shm]", "{worker1: {cpu: cpu}}"
 * errors   ECONFIG, ENOMEM; an option of a plugin is checked when the plugin
 *          is loaded
 */
tenrec_status tenrec_config_set(struct tenrec_config *config, const char *key, const char *value,
                                tenrec_error *err);

/* Frees a configuration. NULL is allowed. Workers made from it are not affected. */
void tenrec_config_drop(struct tenrec_config *config);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
