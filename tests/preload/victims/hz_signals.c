/* SPDX-License-Identifier: BSD-2-Clause
 * A storm of SIGALRM and SIGPROF on an alternate stack while threads allocate;
 * handlers touch only memory that was there before, and see errno untouched by us. */
#include "victim.h"

#include <sys/time.h>

static volatile sig_atomic_t ticks;
static unsigned char *table;

static void on_tick(int sig)
{
    int saved = errno;
    table[(unsigned)ticks * 4096u % (4u << 20)] = (unsigned char)sig;
    ticks++;
    errno = saved;
}

static void *churn(void *arg)
{
    uint64_t s = (uintptr_t)arg + 3;
    stack_t st = {.ss_sp = malloc(65536), .ss_size = 65536};
    CHECK(sigaltstack(&st, NULL) == 0);
    void *slot[100] = {0};
    for (int i = 0; i < 60000; i++) {
        unsigned k = (unsigned)(rnd(&s) % 100);
        if (slot[k])
            CHECK(*(unsigned char *)slot[k] == k);
        free(slot[k]);
        errno = 4711;
        slot[k] = malloc(random_size(&s) + 1);
        CHECK(errno == 4711);
        *(unsigned char *)slot[k] = (unsigned char)k;
    }
    for (int k = 0; k < 100; k++)
        free(slot[k]);
    st.ss_flags = SS_DISABLE;
    sigaltstack(&st, NULL);
    free(st.ss_sp);
    return NULL;
}

int main(void)
{
    table = calloc(1, 4 << 20);
    struct sigaction a = {.sa_handler = on_tick, .sa_flags = SA_RESTART | SA_ONSTACK};
    CHECK(sigaction(SIGALRM, &a, NULL) == 0 && sigaction(SIGPROF, &a, NULL) == 0);
    struct itimerval t = {{0, 300}, {0, 300}};
    CHECK(setitimer(ITIMER_REAL, &t, NULL) == 0);
    t.it_interval.tv_usec = t.it_value.tv_usec = 1000;
    CHECK(setitimer(ITIMER_PROF, &t, NULL) == 0);
    pthread_t th[3];
    for (uintptr_t i = 0; i < 3; i++)
        CHECK(pthread_create(&th[i], NULL, churn, (void *)i) == 0);
    do
        churn((void *)9);
    while (ticks <= 10); /* a busy computer delivers few of them in the time of one */
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(th[i], NULL) == 0);
    struct itimerval off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &off, NULL);
    setitimer(ITIMER_PROF, &off, NULL);
    puts("ok");
    return 0;
}
