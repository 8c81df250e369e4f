/* SPDX-License-Identifier: BSD-2-Clause
 * The program confines itself. What a filter allows cannot be read, and it may kill. */
#include "core/pause.h"
#include "sys/log.h"

static bool sandboxed;
static bool paused; /* by the call under way; sandboxes begin one at a time */

void runtime_sandboxed(void)
{
    if (!pause_memory_is_ours())
        return;
    __atomic_store_n(&sandboxed, true, __ATOMIC_SEQ_CST);
    paused = control_pause();
    log_silence(true);
}

void runtime_sandbox_failed(void)
{
    if (!pause_memory_is_ours())
        return;
    __atomic_store_n(&sandboxed, false, __ATOMIC_SEQ_CST);
    log_silence(false);
    control_resume(paused);
    paused = false;
}

bool runtime_is_sandboxed(void)
{
    return HY_UNLIKELY(__atomic_load_n(&sandboxed, __ATOMIC_SEQ_CST));
}
