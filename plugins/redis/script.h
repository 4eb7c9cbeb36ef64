/* SPDX-License-Identifier: Apache-2.0 */
/* script.h - the Lua scripts that the server runs, each atomically.
 *
 * A store is two hashes. PREFIX holds the keys. PREFIX:meta holds the identity of
 * the store (`id`, drawn by the process that created it), its lease in
 * milliseconds, and for each client the number and result of its last change, so
 * that a change retried after a lost answer is made once. Both hashes expire
 * together. A change is published on the channel PREFIX + key.
 *
 * All scripts get KEYS = { meta, keys } and ARGV = { id, client, number of the
 * last change that was answered, number of this change (0: none), ... }. They
 * reply with an array, or with the error "LOST" when the store has another `id`
 * or lacks a change that it had answered. The array of a change begins with "1"
 * when the change was made and its number recorded. */
#ifndef REDIS_SCRIPT_H
#define REDIS_SCRIPT_H

/* ... new id, lease in ms (0: none) -> { id, lease in force }. Ignores
 * ARGV[1..4]. Also checks the permissions of the user. */
extern const char script_open[];
extern const char script_set[];         /* ... key, value -> { "1" } */
extern const char script_add[];         /* ... key, delta -> { "1", sum as text } */
extern const char script_compare_set[]; /* ... key, expected, desired -> { "1" },
                                           { "0", current value }, or { "2" }: missing */
extern const char script_get[];         /* ... keys -> { "1", values }, or { "0", "1" or "0" of
                                           each } when one is missing */
extern const char script_check[];       /* ... keys -> { "1" or "0" of each } */
extern const char script_remove[];      /* ... keys -> { "1", how many as text } */
extern const char script_count[];       /* -> { how many as text } */
extern const char script_renew[];       /* the lease -> {} */
extern const char script_forget[];      /* this client -> {} */

#endif
