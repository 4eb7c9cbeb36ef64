/* SPDX-License-Identifier: Apache-2.0 */
/* site.c COMMAND ARGS... - runs a command in the security mode mtls, with certificates that are
 * made for it, and ends with its status. */
#include "../support/tls_site.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int status = 0;
    pid_t pid;

    if (argc < 2)
        return 2;
    tls_site_make();
    setenv("TENREC_SECURITY__MODE", "mtls", 1);
    setenv("TENREC_SECURITY__MTLS__CA", tls_site_path("ours.pem"), 1);
    setenv("TENREC_SECURITY__MTLS__CERT", tls_site_path("ours-leaf.pem"), 1);
    setenv("TENREC_SECURITY__MTLS__KEY", tls_site_path("ours-leaf.key"), 1);
    unsetenv("TENREC_SECURITY__MTLS__NAMES");
    pid = fork();
    if (pid == 0) {
        execv(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    if (pid > 0)
        waitpid(pid, &status, 0);
    tls_site_remove();
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
