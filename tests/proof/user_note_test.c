/* SPDX-License-Identifier: Apache-2.0 */
/* user_note_test.c - notes between processes of one user, and files that are none. */
#include "security/proof/user_note.h"

#include "../testing.h"
#include "core/base/private_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char token[USER_NOTE_NAME], path[128];

static void leave(const char *text)
{
    char folder[TENREC_PRIVATE_FOLDER_MAX];
    tenrec_error err;

    assert_status(user_note_leave(text, token, &err), &err);
    assert_status(private_folder(folder, &err), &err);
    snprintf(path, sizeof path, "%s/tenrec-note-%s", folder, token);
}

static void set_up(void)
{
    leave("to me\na note");
}

static void tear_down(void)
{
    user_note_withdraw(token);
    assert_int_equal(access(path, F_OK), -1);
}

static void not_taken(const char *name)
{
    char *text = NULL;
    tenrec_error err;

    assert_int_equal(user_note_take(name, "to me", &text, &err), TENREC_ENOTFOUND);
    assert_null(text);
}

TEST_WITH(note_is_taken_once, set_up, tear_down)
{
    char *text = NULL;
    tenrec_error err;

    assert_status(user_note_take(token, "to me", &text, &err), &err);
    assert_string_equal(text, "a note");
    free(text);
    not_taken(token);
}

TEST_WITH(note_stays_for_its_receiver_when_another_one_asks, set_up, tear_down)
{
    char *text = NULL;
    tenrec_error err;

    assert_int_equal(user_note_take(token, "to you", &text, &err), TENREC_EPERM);
    assert_int_equal(user_note_take(token, "to m", &text, &err), TENREC_EPERM);
    assert_int_equal(user_note_take(token, "to me\na note and more", &text, &err), TENREC_EPERM);
    assert_status(user_note_take(token, "to me", &text, &err), &err);
    free(text);
}

/* Its name is in no folder that others may list. */
TEST_WITH(note_is_hidden_from_other_users, set_up, tear_down)
{
    char folder[sizeof path];
    struct stat st;

    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    assert_int_equal(stat(folder, &st), 0);
    assert_int_equal(st.st_uid, geteuid());
    assert_int_equal(st.st_mode & 0777, 0700);
}

/* A worker that a service manager started may have no XDG_RUNTIME_DIR. */
TEST(note_is_found_when_its_writer_had_no_folder_of_a_session)
{
    char folder[] = "/tmp/tenrec-notes-XXXXXX", *text = NULL;
    tenrec_error err;

    unsetenv("XDG_RUNTIME_DIR");
    leave("to me\na note");
    assert_non_null(mkdtemp(folder));
    setenv("XDG_RUNTIME_DIR", folder, 1);
    assert_status(user_note_take(token, "to me", &text, &err), &err);
    assert_string_equal(text, "a note");
    free(text);
    unsetenv("XDG_RUNTIME_DIR");
    assert_int_equal(rmdir(folder), 0);
}

TEST_WITH(note_may_be_withdrawn, set_up, tear_down)
{
    user_note_withdraw(token);
    not_taken(token);
}

TEST_WITH(note_of_other_users_is_none, set_up, tear_down)
{
    assert_int_equal(chmod(path, 0620), 0); /* others may write it */
    not_taken(token);
    assert_int_equal(chmod(path, 0600), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 65534, 65534), 0);
        not_taken(token);
    }
}

/* Another user may link a file of ours into /tmp, by either kind of link. */
TEST_WITH(note_by_a_link_is_none, set_up, tear_down)
{
    char name[sizeof path], other[USER_NOTE_NAME];

    snprintf(other, sizeof other, "%s", token);
    other[0] = other[0] == '0' ? '1' : '0';
    snprintf(name, sizeof name, "%.*s%s", (int)(strlen(path) - strlen(token)), path, other);
    assert_int_equal(symlink(path, name), 0);
    not_taken(other);
    unlink(name);
    assert_int_equal(link(path, name), 0);
    not_taken(other);
    not_taken(token);
    unlink(name);
}

TEST_WITH(note_is_a_file, set_up, tear_down)
{
    user_note_withdraw(token);
    assert_int_equal(mkfifo(path, 0600), 0);
    not_taken(token); /* and does not wait for a writer */
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    not_taken(token);
    rmdir(path);
}

TEST(note_needs_a_token)
{
    not_taken("");
    not_taken("/etc/passwd");
    not_taken("../../../../etc/passwd0123456789ab");
    not_taken("0123456789ABCDEF0123456789ABCDEF");
    not_taken("0123456789abcdef0123456789abcdef0");
}

TEST(note_has_a_limit)
{
    char *large = calloc(USER_NOTE_MAX + 2, 1);
    tenrec_error err;

    assert_non_null(large);
    memset(large, 'x', USER_NOTE_MAX + 1);
    assert_int_equal(user_note_leave(large, token, &err), TENREC_ETOOBIG);
    free(large);
}
