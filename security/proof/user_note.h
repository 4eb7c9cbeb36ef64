/* SPDX-License-Identifier: Apache-2.0 */
/* user_note.h - a note that one process of a user leaves for another one of the same user on the
 * same host, whichever way they talk: the kernel shows that the file is the user's.
 *
 * A note is a file of mode 0600 in the private folder of the user. Its name holds no secret, and
 * may be sent over any connection: a process that learns it can neither read nor change the note,
 * and the first line says for which receiver it is. */
#ifndef TENREC_PROOF_USER_NOTE_H
#define TENREC_PROOF_USER_NOTE_H

#include <stddef.h>
#include <tenrec/error.h>

enum {
    USER_NOTE_NAME = 33, /* 32 hexadecimal digits */
    USER_NOTE_MAX = 1 << 20,
};

/* errors: EOS, ETOOBIG (more than USER_NOTE_MAX) */
tenrec_status user_note_leave(const char *text, char ret_name[USER_NOTE_NAME], tenrec_error *err);

/* Removes the note, if it is still there. */
void user_note_withdraw(const char *name);

/* Reads and removes the note of that name if it begins with `first_line`; any text may be given as
 * a name.
 *
 * ret      the other lines; free it
 * errors   ENOTFOUND (no note of this user has this name here), EPERM (it begins otherwise, and
 *          stays), ENOMEM */
tenrec_status user_note_take(const char *name, const char *first_line, char **ret,
                             tenrec_error *err);

#endif
