/* SPDX-License-Identifier: Apache-2.0 */
/* ring_folder_test.c - rings whose sockets are files in a folder, as between containers. */
#include "far.h"

#include "agent/agent.h"
#include "transport/ring/transport_ring.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char folder[64];

static void folder_make(void)
{
    snprintf(folder, sizeof folder, "/tmp/tenrec_rings_XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static void folder_remove(void)
{
    assert_int_equal(rmdir(folder), 0); /* no socket is left in it */
}

/* As in a network namespace of its own: no peer has its domain, but for the folder's. */
static void open_contained(struct node *n, tenrec_peer id, const char *shm_dir)
{
    struct agent *a;

    node_init(n, id);
    n->options.shm_dir = shm_dir;
    node_share_memory(n);
    node_open(n);
    a = n->agent.impl;
    for (unsigned i = 0; i < a->listener.n_ports; i++)
        if (!a->listener.port[i].transport->remote &&
            a->listener.port[i].transport != &transport_ring_dir)
            snprintf(a->listener.port[i].domain, TRANSPORT_DOMAIN_MAX, "of %s alone", n->name);
}

static struct sockaddr_un socket_of(struct node *n)
{
    struct agent *a = n->agent.impl;
    struct sockaddr_un at = { .sun_family = AF_UNIX };

    for (unsigned i = 0; i < a->listener.n_ports; i++)
        if (a->listener.port[i].transport == &transport_ring_dir)
            snprintf(at.sun_path, sizeof at.sun_path, "%s/%s", folder, a->listener.port[i].address);
    assert_true(*at.sun_path);
    return at;
}

static void assert_pair_goes_over(struct node n[2], const char *transport)
{
    nodes_start(n, 2);
    assert_ping(&n[0], 1);
    assert_over(&n[0], transport);
    assert_int_equal(atomic_load(&n[0].lost), 0);
    group_close(n, 2);
}

TEST_WITH(ring_folder_leads_to_a_peer_in_another_network_namespace, folder_make, folder_remove)
{
    struct node n[2];

    open_contained(&n[0], 0, folder);
    open_contained(&n[1], 1, folder);
    assert_pair_goes_over(n, "tenrec_ring_dir");
}

TEST_WITH(ring_folder_is_the_same_at_another_path, folder_make, folder_remove)
{
    struct node n[2];
    char elsewhere[80];

    snprintf(elsewhere, sizeof elsewhere, "%s.too", folder);
    assert_int_equal(symlink(folder, elsewhere), 0);
    open_contained(&n[0], 0, folder);
    open_contained(&n[1], 1, elsewhere);
    assert_pair_goes_over(n, "tenrec_ring_dir");
    unlink(elsewhere);
}

TEST_WITH(ring_folder_is_not_used_with_a_peer_that_has_another_or_none, folder_make, folder_remove)
{
    static const char *const other[] = { "/tmp", "" };

    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        struct node n[2];

        open_contained(&n[0], 0, folder);
        open_contained(&n[1], 1, other[i]);
        assert_pair_goes_over(n, "uv");
    }
}

/* In one network namespace nothing changes, whatever the folders are. */
TEST_WITH(ring_folder_is_not_needed_within_a_network_namespace, folder_make, folder_remove)
{
    struct node n[2];

    node_init(&n[0], 0);
    n[0].options.shm_dir = folder;
    node_share_memory(&n[0]);
    node_open(&n[0]);
    open_node(&n[1], 1, "sleep");
    assert_pair_goes_over(n, "tenrec_ring");
}

/* The file of a process that was killed, and no file: TCP, and no error. */
TEST_WITH(ring_folder_is_left_out_when_its_socket_is_stale_or_missing, folder_make, folder_remove)
{
    for (int stale = 0; stale < 2; stale++) {
        struct node n[2];
        struct sockaddr_un at;
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        open_contained(&n[0], 0, folder);
        open_contained(&n[1], 1, folder);
        at = socket_of(&n[1]);
        assert_int_equal(unlink(at.sun_path), 0);
        if (stale)
            assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
        close(fd);
        assert_pair_goes_over(n, "uv");
    }
}

TEST_WITH(ring_folder_has_sockets_for_this_user_alone_until_the_worker_ends, folder_make,
          folder_remove)
{
    const mode_t before = umask(0);
    struct sockaddr_un at;
    struct node n;
    struct stat st;

    open_contained(&n, 0, folder);
    at = socket_of(&n);
    umask(before);
    assert_int_equal(stat(at.sun_path, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 07777, 0600);
    nodes_start(&n, 1);
    group_close(&n, 1);
    assert_int_not_equal(stat(at.sun_path, &st), 0);
}

/* ---- folders that are refused ---- */

static tenrec_status open_at(struct node *n, const char *path, tenrec_error *err)
{
    node_init(n, 0);
    n->options.shm_dir = path;
    node_share_memory(n);
    return node_try_open(n, err);
}

static void assert_refused(const char *path, const char *why)
{
    struct node n;
    tenrec_error err = { .code = TENREC_OK };

    assert_int_equal(open_at(&n, path, &err), TENREC_ECONFIG);
    assert_text_has(err.text, path);
    assert_text_has(err.text, why);
    pthread_mutex_destroy(&n.lock);
}

static void assert_taken(const char *path)
{
    struct node n;
    tenrec_error err;

    assert_status(open_at(&n, path, &err), &err);
    nodes_start(&n, 1);
    group_close(&n, 1);
}

TEST_WITH(ring_folder_is_refused_when_others_may_replace_its_sockets, folder_make, folder_remove)
{
    for (unsigned mode = 0; mode < 0100; mode++) {
        assert_int_equal(chmod(folder, 0700 | mode), 0);
        if (mode & 022)
            assert_refused(folder, "chmod go-w, or chmod +t");
        assert_int_equal(chmod(folder, 01700 | mode), 0);
        assert_taken(folder);
    }
}

/* A user that may rename the folder can put another in its place. */
TEST_WITH(ring_folder_is_refused_when_others_may_replace_what_it_lies_in, folder_make,
          folder_remove)
{
    char path[80];

    snprintf(path, sizeof path, "%s/rings", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_taken(path);
    assert_int_equal(chmod(folder, 0777), 0);
    assert_refused(path, "other users may replace the sockets in /tmp/tenrec_rings_");
    assert_int_equal(rmdir(path), 0);
}

/* A tool on a host without the folder, which only the containers have. */
TEST_WITH(ring_folder_does_not_matter_to_a_process_outside_the_group, folder_make, folder_remove)
{
    struct node n;
    tenrec_error err;

    node_init(&n, TENREC_ANONYMOUS);
    n.options.shm_dir = "/nowhere";
    node_share_memory(&n);
    assert_status(node_try_open(&n, &err), &err);
    nodes_start(&n, 0);
    group_close(&n, 1);
}

/* Peers of this network that have no folder read the address, too. */
TEST_WITH(ring_folder_is_not_what_a_worker_publishes, folder_make, folder_remove)
{
    struct node n;
    tenrec_error err;

    node_init(&n, 0);
    n.options.shm_dir = folder;
    node_share_memory(&n);
    n.transport[0].s = "shm";
    n.options.transports.n = 1;
    assert_status(node_try_open(&n, &err), &err);
    assert_memory_equal(n.agent.ops->address(&n.agent), "tenrec_ring://", 14);
    nodes_start(&n, 1);
    group_close(&n, 1);
}

static bool is_root(void)
{
    return geteuid() == 0;
}

TEST_WHEN(ring_folder_is_refused_when_it_belongs_to_another_user, is_root, folder_make,
          folder_remove)
{
    assert_int_equal(chown(folder, 4242, 4242), 0);
    assert_refused(folder, "belongs to user 4242, who could replace the sockets in it");
}

TEST_WITH(ring_folder_is_refused_when_it_is_none, folder_make, folder_remove)
{
    char path[200];
    FILE *f;

    assert_refused("tmp", "expected an absolute path");
    snprintf(path, sizeof path, "%s/missing", folder);
    assert_refused(path, "make or mount it first: No such file or directory");
    snprintf(path, sizeof path, "%s/file", folder);
    f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    assert_refused(path, "expected a folder");
    unlink(path);
}

/* The longest that a socket's path leaves room for, and one byte more. */
TEST_WITH(ring_folder_is_refused_when_its_path_is_too_long, folder_make, folder_remove)
{
    struct node n[2];
    char path[85];
    size_t len = strlen(folder);

    memset(path, 'x', sizeof path);
    memcpy(path, folder, len);
    path[len] = '/';
    path[84] = '\0';
    assert_refused(path, "a path of 84 bytes; expected at most 83");
    path[83] = '\0';
    assert_int_equal(mkdir(path, 0700), 0);
    open_contained(&n[0], 0, path);
    open_contained(&n[1], 1, path);
    assert_pair_goes_over(n, "tenrec_ring_dir");
    assert_int_equal(rmdir(path), 0);
}

/* What a peer says is a name in the folder, and leads nowhere else. */
TEST(ring_folder_takes_nothing_but_the_names_of_its_sockets)
{
    static const char *const bad[] = { "",
                                       "tenrec_",
                                       "tenrec_0123456789abcde",
                                       "tenrec_0123456789abcdef0",
                                       "tenrec_0123456789abcdeF",
                                       "tenrec_../../0123456789",
                                       "/enrec_0123456789abcdef",
                                       "../../tmp/0123456789abc" };
    static const char good[] = "tenrec_0123456789abcdef";
    union transport_address at, path;
    tenrec_error err;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(ring_folder_parse(bad[i], strlen(bad[i]), &at, &err), TENREC_EINVAL);
        assert_text_has(err.text, "expected the name of a socket in shm_dir");
    }
    assert_status(ring_folder_parse(good, strlen(good), &at, &err), &err);
    ring_folder_join("/run/rings", &at, &path);
    assert_string_equal(path.local.sun_path, "/run/rings/tenrec_0123456789abcdef");
}
