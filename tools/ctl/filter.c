/* SPDX-License-Identifier: BSD-2-Clause
 * Do the seccomp filters that are in force here kill for the calls that the library would make?
 * A program cannot ask: its own fork might be what kills it. Here nothing is lost. */
#include "tools/ctl/ctl.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/env.h"
#include "sys/filter.h"
#include "sys/usage.h"

#define PATIENCE_S 5 /* a supervisor that never answers (SECCOMP_RET_USER_NOTIF) */

enum answer { SURVIVED, THERE_IS_NO_SUCH_CALL, LOST };

static enum answer try_in_child(unsigned n)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* no core of it anywhere */
        (void)alarm(PATIENCE_S);
        _exit(os_try_filtered(n) ? SURVIVED : THERE_IS_NO_SUCH_CALL);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return LOST;
    return pid > 0 && WIFEXITED(status) ? (enum answer)WEXITSTATUS(status) : LOST;
}

unsigned ctl_harmless_filters(void)
{
    enum answer a = SURVIVED;
    int filters = os_seccomp() > 0 ? os_seccomp_filters() : 0;

    for (unsigned n = 0; filters > 0 && a == SURVIVED; n++)
        a = try_in_child(n);
    return filters > 0 && a == THERE_IS_NO_SUCH_CALL ? (unsigned)filters : 0;
}

/* What the user has said himself stays. */
void ctl_tell_filters(void)
{
    char text[16];
    const char *name = options_info(OPT_SECCOMP)->env;
    unsigned filters = env_get(name) ? 0 : ctl_harmless_filters();

    if (filters == 0)
        return;
    (void)snprintf(text, sizeof(text), "%u", filters);
    (void)setenv(name, text, 1);
}
