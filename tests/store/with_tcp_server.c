/* SPDX-License-Identifier: Apache-2.0 */
/* with_tcp_server PROGRAM ARGS... - runs a program with the URL of a TCP store of its own in the
 * place of each argument @TCP@. */
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <tenrec/store.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct tenrec_store_server *server;
    int status = -1;
    uint16_t port;
    char url[64];
    tenrec_error err;
    pid_t pid;

    if (argc < 2)
        return 2;
    if (tenrec_store_server_new("127.0.0.1", 0, &server, &port, &err) != TENREC_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    snprintf(url, sizeof url, "tcp://127.0.0.1:%u", port);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "@TCP@") == 0)
            argv[i] = url;
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execv(argv[1], argv + 1);
        _exit(127);
    }
    if (pid > 0)
        waitpid(pid, &status, 0);
    tenrec_store_server_drop(server);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
