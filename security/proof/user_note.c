/* SPDX-License-Identifier: Apache-2.0 */
#include "security/proof/user_note.h"

#include "core/base/memory.h"
#include "core/base/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOTE_PATH_MAX = TENREC_PRIVATE_FOLDER_MAX + sizeof "/tenrec-note-" + USER_NOTE_NAME };

/* Returns false for a text that is no name of a note: it could lead to another folder. */
static bool note_name_ok(const char *name)
{
    return strlen(name) == USER_NOTE_NAME - 1 &&
           strspn(name, "0123456789abcdef") == USER_NOTE_NAME - 1;
}

static void note_path(const char *folder, const char *name, char ret[static NOTE_PATH_MAX])
{
    snprintf(ret, NOTE_PATH_MAX, "%s/tenrec-note-%s", folder, name);
}

tenrec_status user_note_leave(const char *text, char ret_name[USER_NOTE_NAME], tenrec_error *err)
{
    const size_t len = strlen(text);
    uint8_t random[(USER_NOTE_NAME - 1) / 2];
    char folder[TENREC_PRIVATE_FOLDER_MAX], path[NOTE_PATH_MAX];
    tenrec_status st;

    if (len > USER_NOTE_MAX)
        return tenrec_fail(err, TENREC_ETOOBIG, "a note of %zu bytes, at most %d are allowed", len,
                           USER_NOTE_MAX);
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "no random bytes");
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(ret_name + 2 * i, 3, "%02x", random[i]);
    st = private_folder(folder, err);
    if (st != TENREC_OK)
        return st;
    note_path(folder, ret_name, path);
    return private_file_write(path, PRIVATE_FILE_NEW, text, len, err);
}

static bool note_unlink(void *arg, const char *folder)
{
    char path[NOTE_PATH_MAX];

    note_path(folder, arg, path);
    return unlink(path) == 0;
}

void user_note_withdraw(const char *name)
{
    if (note_name_ok(name))
        private_folder_each(note_unlink, (void *)(uintptr_t)name);
}

/* A link made by another user, or a file that other users can write, shows nothing. */
static bool note_is_own(int fd, struct stat *ret)
{
    return fstat(fd, ret) == 0 && S_ISREG(ret->st_mode) && ret->st_uid == geteuid() &&
           (ret->st_mode & 077) == 0 && ret->st_nlink == 1 && ret->st_size <= USER_NOTE_MAX;
}

struct note_search {
    const char *name;
    char path[NOTE_PATH_MAX]; /* of the note */
    int fd;                   /* -1: not found */
    struct stat st;
};

static bool note_find(void *arg, const char *folder)
{
    struct note_search *s = arg;

    note_path(folder, s->name, s->path);
    s->fd = open(s->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (s->fd >= 0 && note_is_own(s->fd, &s->st))
        return true;
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    return false;
}

static char *note_read(const struct note_search *s)
{
    char *text = memory_new((size_t)s->st.st_size + 1, 1);
    ssize_t n = 1;
    size_t len = 0;

    while (text && n > 0 && len < (size_t)s->st.st_size) {
        n = read(s->fd, text + len, (size_t)s->st.st_size - len);
        len += n > 0 ? (size_t)n : 0;
    }
    return text;
}

tenrec_status user_note_take(const char *name, const char *first_line, char **ret,
                             tenrec_error *err)
{
    const size_t len = strlen(first_line);
    struct note_search s = { .name = name, .fd = -1 };
    char *text;

    if (note_name_ok(name))
        private_folder_each(note_find, &s);
    if (s.fd < 0)
        return tenrec_fail(err, TENREC_ENOTFOUND, "no note of this user is here");
    text = note_read(&s);
    close(s.fd);
    if (!text)
        return memory_fail(err);
    if (strncmp(text, first_line, len) != 0 || text[len] != '\n') {
        free(text);
        return tenrec_fail(err, TENREC_EPERM, "the note is for another worker");
    }
    unlink(s.path);
    memmove(text, text + len + 1, strlen(text + len + 1) + 1);
    *ret = text;
    return TENREC_OK;
}
