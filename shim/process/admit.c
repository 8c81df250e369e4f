/* SPDX-License-Identifier: BSD-2-Clause
 * The wait of HYBRID_ADMISSION, in the constructor and before main. No signal is blocked, no lock
 * is held: whoever ends or stops the process meanwhile does so as usual. */
#include "core/control.h"
#include "place/admission.h"
#include "place/rules/admission.h"
#include "process/process.h"
#include "settings/settings.h"
#include "sys/emulator.h"
#include "sys/os.h"

#define GRACE_NS 2000000000ull /* beyond the time that is allowed: for a thread that is late */

static uint32_t answers; /* what the waiting thread sleeps on */

void admit_serve(void)
{
    if (!admission_pending())
        return;
    admission_look();
    __atomic_add_fetch(&answers, 1, __ATOMIC_SEQ_CST);
    os_wake_word(&answers);
}

void admit_wait(void)
{
    uint64_t until = os_now_ns() + hy_config.set.admission + GRACE_NS;

    admission_begin();
    if (emulator_open()) /* its time stands still while its threads wait outside */
        admission_give_up("the emulated machine's time would not pass meanwhile");
    while (admission_pending()) {
        uint32_t seen = __atomic_load_n(&answers, __ATOMIC_SEQ_CST);
        if (control_running())
            control_wake(); /* the registry's file is in its table of descriptors */
        else
            admit_serve();
        if (admission_pending() && os_now_ns() > until)
            admission_give_up("nobody answered");
        else if (admission_pending())
            os_wait_word(&answers, seen, ADMISSION_LOOK_NS);
        if (admission_pending() && __atomic_load_n(&answers, __ATOMIC_SEQ_CST) != seen)
            os_sleep_ns(ADMISSION_LOOK_NS); /* not as often as it is answered */
    }
}
