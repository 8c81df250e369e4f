/* SPDX-License-Identifier: BSD-2-Clause
 * See migrate_clock.h. */
#include "pages/migrate_clock.h"

#include "core/pause.h"
#include "core/state.h"
#include "sys/emulator.h"
#include "sys/os.h"
#include "sys/usage.h"

#define WAIT_NS 50000000ull /* looks whether to go on, at least so often */

static uint64_t (*meanwhile)(void);

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

void clock_meanwhile(uint64_t (*fn)(void))
{
    meanwhile = fn;
}

bool clock_rest_until(uint64_t due)
{
    while (clock_goes_on()) {
        uint64_t again = meanwhile ? meanwhile() : UINT64_MAX, now = clock_now_ns();
        if (now >= due)
            return true;
        uint64_t left = HY_MIN(due - now, again);
        if (emulator_open())
            (void)emulator_sleep_ns(left, WAIT_NS);
        else
            pause_sleep(HY_MIN(left, WAIT_NS));
    }
    return false;
}
