/* SPDX-License-Identifier: BSD-2-Clause
 * Constructor and destructor of libpmemu: early and late, so that the program's own
 * ones are emulated. */
#include "core/start.h"

#include <pthread.h>

#include "core/core.h"
#include "instrument/sync.h"

static void __attribute__((constructor(101))) start(void)
{
    emu_start();
    emu_sync_start();
    pthread_atfork(NULL, NULL, emu_core_forked);
}

static void __attribute__((destructor(101))) finish(void)
{
    emu_finish();
}
