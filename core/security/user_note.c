/* SPDX-License-Identifier: Apache-2.0 */
#include "security/user_note.h"

#include "base/memory.h"

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

#define NOTE_PATH "/tmp/tenrec-note-" /* a folder where no user removes another's files */
#define NOTE_PATH_MAX (sizeof NOTE_PATH + USER_NOTE_TOKEN)

/* Returns false for a text that is no token: it could lead to another folder. */
static bool note_path(const char *token, char ret[NOTE_PATH_MAX])
{
    if (strlen(token) != USER_NOTE_TOKEN - 1 ||
        strspn(token, "0123456789abcdef") != USER_NOTE_TOKEN - 1)
        return false;
    snprintf(ret, NOTE_PATH_MAX, NOTE_PATH "%s", token);
    return true;
}

static bool note_write(int fd, const char *text, size_t len)
{
    while (len > 0) {
        const ssize_t n = write(fd, text, len);

        if (n < 0 && errno != EINTR)
            return false;
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

tenrec_status user_note_leave(const char *text, char ret_token[USER_NOTE_TOKEN], tenrec_error *err)
{
    const size_t len = strlen(text);
    uint8_t random[(USER_NOTE_TOKEN - 1) / 2];
    char path[NOTE_PATH_MAX];
    bool written;
    int fd;

    if (len > USER_NOTE_MAX)
        return tenrec_fail(err, TENREC_ETOOBIG, "a note of %zu bytes, at most %d are allowed", len,
                           USER_NOTE_MAX);
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "no random bytes");
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(ret_token + 2 * i, 3, "%02x", random[i]);
    note_path(ret_token, path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot make '%s'", path);
    written = note_write(fd, text, len);
    if (!written)
        tenrec_fail_errno(err, TENREC_EOS, errno, "cannot write '%s'", path);
    close(fd);
    if (!written)
        unlink(path);
    return written ? TENREC_OK : TENREC_EOS;
}

void user_note_withdraw(const char *token)
{
    char path[NOTE_PATH_MAX];

    if (note_path(token, path))
        unlink(path);
}

/* A link made by another user, or a file that other users can write, shows nothing. */
static bool note_is_own(int fd, struct stat *ret)
{
    return fstat(fd, ret) == 0 && S_ISREG(ret->st_mode) && ret->st_uid == geteuid() &&
           (ret->st_mode & 077) == 0 && ret->st_nlink == 1 && ret->st_size <= USER_NOTE_MAX;
}

tenrec_status user_note_take(const char *token, char **ret, tenrec_error *err)
{
    char path[NOTE_PATH_MAX];
    struct stat st;
    ssize_t n = 1;
    size_t len = 0;
    int fd = note_path(token, path)
                 ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
                 : -1;

    if (fd < 0 || !note_is_own(fd, &st)) {
        if (fd >= 0)
            close(fd);
        return tenrec_fail(err, TENREC_ENOTFOUND, "no note of this user is here");
    }
    unlink(path);
    *ret = memory_new((size_t)st.st_size + 1, 1);
    while (*ret && n > 0 && len < (size_t)st.st_size) {
        n = read(fd, *ret + len, (size_t)st.st_size - len);
        len += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    return *ret ? TENREC_OK : memory_fail(err);
}
