/* SPDX-License-Identifier: Apache-2.0 */
/* share.h - the socket at which a process gives its text to the serving one. */
#ifndef PROMETHEUS_SHARE_H
#define PROMETHEUS_SHARE_H

#include <sys/un.h>
#include <tenrec/observer_plugin.h>

/* ret      a socket that the caller closes
 * errors   EOS */
tenrec_status share_listen(const struct sockaddr_un *at, int *ret, tenrec_error *err);

/* Accepts one connection of this user, writes the text, and closes it. May block for a second. */
void share_answer(struct tenrec_observer *self, int listener);

#endif
