/* SPDX-License-Identifier: Apache-2.0 */
/* own_user.h - whether the kernel's number of a user is ours. */
#ifndef TENREC_SECRET_OWN_USER_H
#define TENREC_SECRET_OWN_USER_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns true if `user`, as the kernel names the owner of a socket or of its peer, is the user of
 * this process and no other. */
bool own_user_is(uid_t user);

#endif
