/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/purse.h"

#include <pthread.h>
#include <string.h>

#include "sys/emulator.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    struct regret regret;
    uint64_t begun_ns; /* the control thread's first look: the run is a little longer */
} purse;

struct regret *purse_open(double *ret_run_ns)
{
    uint64_t now = emulator_clock_ns();

    pthread_mutex_lock(&lock);
    if (purse.begun_ns == 0)
        purse.begun_ns = now;
    if (ret_run_ns)
        *ret_run_ns = now > purse.begun_ns ? (double)(now - purse.begun_ns) : 0;
    return &purse.regret;
}

double purse_run_ns(void)
{
    double run_ns;

    (void)purse_open(&run_ns);
    purse_close();
    return run_ns;
}

void purse_close(void)
{
    pthread_mutex_unlock(&lock);
}

void purse_child(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh;
    memset(&purse, 0, sizeof(purse));
}
