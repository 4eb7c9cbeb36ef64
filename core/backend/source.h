/* SPDX-License-Identifier: Apache-2.0 */
/* source.h - the accounts of callers that are no members by where they come from, and how many
 * proofs of membership each source may make this process compute (struct tenrec_budget).
 *
 * Connections are free to a stranger, so a limit for each of them limits nothing. A source from
 * which a connection was let in is exempt, for it has members that a stranger at the same address
 * must not keep out; and so is this host, whose processes can use up our processors without a
 * connection. One table for the process. Any thread. */
#ifndef TENREC_BACKEND_SOURCE_H
#define TENREC_BACKEND_SOURCE_H

#include <tenrec/agent.h>

/* Proofs of a source in each second, after the first ones. */
#define SOURCE_PROOFS_PER_S 32

struct tenrec_account *source_get(const void *owner, const struct sockaddr *from, uint32_t process);
bool source_may_prove(struct tenrec_account *a, uint32_t at_once, uint64_t now_ns);
void source_admit(struct tenrec_account *a);

/* For account.c: frees the accounts beside that of `id` that nothing refers to. */
void source_sweep(uint64_t id);

/* Sources in the table: those with references, and those whose proofs are not worked off. */
size_t sources_kept(void);

#endif
