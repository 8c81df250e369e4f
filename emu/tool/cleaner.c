/* SPDX-License-Identifier: BSD-2-Clause
 * See cleaner.h. Not a child of the run, which would otherwise find a child that it has not
 * made; without its descriptors, so that a pipe's reader sees the end. */
#include "tool/cleaner.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine/machine.h"

/* Programs that the run has left in the background are still on the machine. */
#define LOOK_AGAIN_US 200000

static void clean(int run, const char *machine)
{
    struct pollfd p = {.fd = run, .events = POLLIN};

    while (poll(&p, 1, -1) < 0 && errno == EINTR)
        ;
    while (emu_machine_tidy(machine) > 0)
        usleep(LOOK_AGAIN_US);
}

int cleaner_start(const char *machine)
{
    int run = (int)syscall(SYS_pidfd_open, getpid(), 0), status = 1;
    pid_t child = run < 0 ? -1 : fork();

    if (child < 0)
        return -errno;
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild != 0)
            _exit(grandchild < 0);
        setsid();
        signal(SIGHUP, SIG_IGN);
        if (chdir("/") == 0 && dup2(run, 0) == 0) {
            close_range(1, ~0u, 0);
            clean(0, machine);
        }
        _exit(0);
    }
    close(run);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0 ? 0 : -EAGAIN;
}
