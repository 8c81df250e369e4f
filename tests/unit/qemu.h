/* SPDX-License-Identifier: BSD-2-Clause
 * scripts/aarch64: one Linux process carries out another's instructions, and passes its calls on.
 */
#ifndef HYBRID_TESTS_QEMU_H
#define HYBRID_TESTS_QEMU_H

#include <stdio.h>
#include <string.h>

static inline int under_qemu(void)
{
    char name[16] = "";
    FILE *f = fopen("/proc/self/comm", "r");
    if (f != NULL && fgets(name, sizeof(name), f) == NULL)
        name[0] = '\0';
    if (f != NULL)
        fclose(f);
    return strncmp(name, "qemu-", 5) == 0;
}
#define SKIP_UNDER_QEMU(why)                                                                       \
    do {                                                                                           \
        if (under_qemu()) {                                                                        \
            print_message("under qemu-user %s\n", why);                                            \
            skip();                                                                                \
        }                                                                                          \
    } while (0)

#endif
