/* SPDX-License-Identifier: BSD-2-Clause
 * A set-uid program that is linked with the library: it works, and says whether
 * the kernel called it secure. The runner looks for files that must not appear. */
#include "victim.h"

#include <sys/auxv.h>

int main(void)
{
    for (int i = 0; i < 3000; i++) {
        char *p = malloc((size_t)i * 100 + 1);
        CHECK(p);
        fill(p, (size_t)i * 100, (uint64_t)i);
        CHECK(holds(p, (size_t)i * 100, (uint64_t)i));
        free(p);
    }
    printf("secure %lu, %s\n", getauxval(AT_SECURE), getuid() == geteuid() ? "same user" : "other user");
    return 3;
}
