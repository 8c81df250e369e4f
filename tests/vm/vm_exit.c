/* SPDX-License-Identifier: BSD-2-Clause
 * vm_exit N: ends the test machine through QEMU's isa-debug-exit device; QEMU's
 * own status is then 2 * N + 1. */
#include <stdlib.h>
#include <sys/io.h>
#include <unistd.h>

#define DEBUG_EXIT_PORT 0xf4

int main(int argc, char **argv)
{
    int status = argc > 1 ? atoi(argv[1]) : 126;
    sync();
    if (ioperm(DEBUG_EXIT_PORT, 4, 1) < 0)
        return 1;
    outl(status < 0 || status > 126 ? 126u : (unsigned)status, DEBUG_EXIT_PORT);
    return 2; /* still here: no such device */
}
