/* SPDX-License-Identifier: BSD-2-Clause
 * See migrate_clock.h. */
#include "pages/migrate_clock.h"

#include "core/pause.h"
#include "core/state.h"
#include "sys/emulator.h"
#include "sys/os.h"
#include "sys/usage.h"

#define WAIT_NS 50000000ull /* looks whether to go on, at least so often */

uint64_t clock_now_ns(void)
{
    return emulator_open() ? emulator_now_ns() : os_now_ns();
}

uint64_t clock_spent_ns(void)
{
    return emulator_open() ? 0 : os_thread_cpu_ns();
}

bool clock_goes_on(void)
{
    return runtime_state() == HY_STEERING && !pause_wanted() && !os_main_ended();
}

bool clock_rest_until(uint64_t due)
{
    while (clock_goes_on()) {
        uint64_t now = clock_now_ns();
        if (now >= due)
            return true;
        if (emulator_open())
            (void)emulator_sleep_ns(due - now, WAIT_NS);
        else
            pause_sleep(HY_MIN(due - now, WAIT_NS));
    }
    return false;
}
