/* SPDX-License-Identifier: BSD-2-Clause
 * siglongjmp out of a fault handler and longjmp out of callbacks of libc, many
 * times; allocations go on as before. A stack overflow is survived as well. */
#include "victim.h"

#include <setjmp.h>

static sigjmp_buf back;
static char *guarded;

static void on_fault(int sig)
{
    siglongjmp(back, sig);
}

static int jumps_out(const void *a, const void *b)
{
    if (*(const int *)a == 777 || *(const int *)b == 777)
        siglongjmp(back, 1);
    return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static int overflow(int n)
{
    if (n < 0) /* never: keeps the compiler calm */
        return 0;
    volatile char frame[4096];
    frame[n & 4095] = (char)n;
    return overflow(n + 1) + frame[(n + 1) & 4095];
}

int main(void)
{
    stack_t st = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    CHECK(sigaltstack(&st, NULL) == 0);
    struct sigaction a = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    CHECK(sigaction(SIGSEGV, &a, NULL) == 0 && sigaction(SIGBUS, &a, NULL) == 0);
    guarded = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mprotect(guarded + (1 << 20), 1 << 20, PROT_NONE) == 0);
    volatile int faults = 0, outs = 0, deep = 0;
    for (volatile int i = 0; i < 2000; i++) {
        if (sigsetjmp(back, 1) == 0)
            guarded[(1 << 20) + i] = 1;
        else
            faults++;
        char *p = malloc((size_t)i * 10 + 1);
        memset(p, 1, (size_t)i * 10 + 1);
        free(p);
    }
    for (volatile int i = 0; i < 200; i++) {
        int *v = malloc(3000 * sizeof *v);
        for (int k = 0; k < 3000; k++)
            v[k] = (k * 7919) % 3001;
        if (sigsetjmp(back, 1) == 0)
            qsort(v, 3000, sizeof *v, jumps_out);
        else
            outs++;
        free(v);
    }
    for (volatile int i = 0; i < 3; i++)
        if (sigsetjmp(back, 1) == 0)
            overflow(0);
        else
            deep++;
    printf("%d faults, %d jumps, %d overflows\n", faults, outs, deep);
    return 0;
}
