/* SPDX-License-Identifier: Apache-2.0 */
/* user_note.h - a note that one process of a user leaves for another one of the same user on the
 * same host, whichever way they talk: the kernel shows that the file is the user's.
 *
 * A note is a file of mode 0600 in /tmp under a random name, its token, which may be sent over any
 * connection: a process that learns it can neither read nor change the note. */
#ifndef TENREC_SECURITY_USER_NOTE_H
#define TENREC_SECURITY_USER_NOTE_H

#include <stddef.h>
#include <tenrec/error.h>

enum {
    USER_NOTE_TOKEN = 33, /* 32 hexadecimal digits */
    USER_NOTE_MAX = 1 << 20,
};

/* errors: EOS, ETOOBIG (more than USER_NOTE_MAX) */
tenrec_status user_note_leave(const char *text, char ret_token[USER_NOTE_TOKEN], tenrec_error *err);

/* Removes the note, if it is still there. */
void user_note_withdraw(const char *token);

/* Reads and removes the note that a token names; any text may be given as one.
 *
 * ret      free it
 * errors   ENOTFOUND (no note of this user has this token here), EOS, ENOMEM */
tenrec_status user_note_take(const char *token, char **ret, tenrec_error *err);

#endif
