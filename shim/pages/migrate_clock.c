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
static uint64_t apart_ns; /* processor time that it took */

uint64_t clock_now_ns(void)
{
    return emulator_clock_ns();
}

uint64_t clock_spent_ns(void)
{
    return emulator_open() ? 0 : os_thread_cpu_ns() - apart_ns;
}

bool clock_goes_on(void)
{
    return runtime_state() == HY_STEERING && !pause_wanted() && !os_main_ended();
}

void clock_meanwhile(uint64_t (*fn)(void))
{
    meanwhile = fn;
}

/* It has limits of its own: looks at pages are not to be rarer for what it takes. */
static uint64_t do_meanwhile(void)
{
    uint64_t began = clock_spent_ns(), again = meanwhile();
    apart_ns += clock_spent_ns() - began;
    return again;
}

bool clock_rest_until(uint64_t due)
{
    while (clock_goes_on()) {
        uint64_t again = meanwhile ? do_meanwhile() : UINT64_MAX, now = clock_now_ns();
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
