/* SPDX-License-Identifier: BSD-2-Clause
 * Constructor and destructor of libpmemu: early and late, so that the program's own
 * ones are emulated. */
#include "program/start.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/core.h"
#include "program/sde.h"
#include "settings/settings.h"
#include "instrument/sync.h"
#include "pmemu.h"

#define PERCENT 1000

/* The program's, if it has one. */
#pragma weak pmemu_compute_milli

static void calibrate(void)
{
    double percent = &pmemu_compute_milli ? (double)pmemu_compute_milli / PERCENT : 100;
    const char *text = emu_setting(EMU_S_COMPUTE);
    char *end;

    if (*text) {
        percent = strtod(text, &end);
        if (*end || !(percent >= 0.1 && percent <= 10000))
            emu_setting_refuse(EMU_S_COMPUTE);
    }
    emu_core_compute((int64_t)(percent * PERCENT + 0.5));
}

static void __attribute__((constructor(101))) start(void)
{
    emu_start(true);
    calibrate();
    emu_sync_start();
    emu_sde_register();
    pthread_atfork(NULL, NULL, emu_core_forked);
    at_quick_exit(emu_finish); /* first registered, last to run */
}

static void __attribute__((destructor(101))) finish(void)
{
    emu_finish();
}
