/* SPDX-License-Identifier: Apache-2.0 */
/* script.h - what runs inside the server, one script at a time: the server runs
 * nothing else meanwhile.
 *
 * A store is two hashes. PREFIX holds the keys. PREFIX:meta says which store it
 * is (`id`, drawn by who opened it first), its lease in milliseconds, and for
 * each client the number of its last change and what came out of it: a change
 * that is asked for twice, because its answer was lost, is done once. Both
 * hashes expire together. A change is told on the channel PREFIX + key.
 *
 * All scripts get KEYS = { meta, keys } and ARGV = { id, client, the number of
 * the last change that was answered, the number of this one (0: none), ... }.
 * Their reply is an array, or the error "LOST" when this store is not that of
 * `id` any more, or does not know of a change that it had answered. The array of
 * a change begins with "1" when it was made and its number noted. */
#ifndef REDIS_SCRIPT_H
#define REDIS_SCRIPT_H

/* ... new id, lease in ms (0: none) -> { id, lease in force }. Takes no notice
 * of ARGV[1..4]. Also finds out whether all rights are there. */
extern const char script_open[];
extern const char script_set[];         /* ... key, value -> { "1" } */
extern const char script_add[];         /* ... key, delta -> { "1", sum as text } */
extern const char script_compare_set[]; /* ... key, expected, desired -> { "1" },
                                           { "0", value there }, or { "2" }: missing */
extern const char script_get[];         /* ... keys -> { "1", values }, or { "0", "1" or "0" of
                                           each } when one is missing */
extern const char script_check[];       /* ... keys -> { "1" or "0" of each } */
extern const char script_remove[];      /* ... keys -> { "1", how many as text } */
extern const char script_count[];       /* -> { how many as text } */
extern const char script_renew[];       /* the lease -> {} */
extern const char script_forget[];      /* this client -> {} */

#endif
