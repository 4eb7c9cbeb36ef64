/* SPDX-License-Identifier: Apache-2.0 */
/* inspect.h - `tenrec info --worker`: the debug info of a running worker; values of JSON. */
#ifndef TENREC_TOOLS_INSPECT_H
#define TENREC_TOOLS_INSPECT_H

#include "outside.h"
#include "tool.h"

/* Prints the debug info of worker `name`. Returns the exit status. */
int inspect(const struct tool *self, struct outside *o, const char *name, bool as_json);

/* The value of a key of a JSON object; "" or 0 without one. */
struct json_t;
const char *inspect_text(const struct json_t *object, const char *key);
long long inspect_number(const struct json_t *object, const char *key);

/* Prints a map as JSON, with the text `instead` as the value of `key`. */
void inspect_print_map(const struct tenrec_value *map, const char *key, const char *instead);

#endif
