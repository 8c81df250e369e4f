/* SPDX-License-Identifier: BSD-2-Clause
 * The program confines itself. What a filter allows cannot be read, and it may kill. */
#include "core/pause.h"
#include "sys/filter.h"
#include "sys/log.h"
#include "sys/usage.h"

static bool sandboxed;
static bool paused; /* by the call under way; sandboxes begin one at a time */

void runtime_sandboxed(void)
{
    if (!pause_memory_is_ours())
        return;
    __atomic_store_n(&sandboxed, true, __ATOMIC_SEQ_CST);
    os_calls_forbid();
    paused = control_pause();
    log_silence(true);
}

void runtime_sandbox_failed(void)
{
    if (!pause_memory_is_ours())
        return;
    __atomic_store_n(&sandboxed, false, __ATOMIC_SEQ_CST);
    os_calls_allow();
    log_silence(false);
    control_resume(paused);
    paused = false;
}

static enum { NOT_ASKED, THREADS, NO_THREADS } inherited; /* what filters from before us let */

bool runtime_lets_threads(void)
{
    if (HY_UNLIKELY(__atomic_load_n(&inherited, __ATOMIC_RELAXED) == NOT_ASKED)) {
        bool let = os_filters_let_threads();
        __atomic_store_n(&inherited, let ? THREADS : NO_THREADS, __ATOMIC_RELAXED);
        log_silence(!let);
    }
    return __atomic_load_n(&inherited, __ATOMIC_RELAXED) == THREADS;
}

static uint8_t thread_made;

bool runtime_has_made_thread(void)
{
    return __atomic_load_n(&thread_made, __ATOMIC_RELAXED) != 0;
}

void runtime_thread_made(void)
{
    __atomic_store_n(&thread_made, 1, __ATOMIC_RELAXED);
    if (HY_UNLIKELY(__atomic_load_n(&inherited, __ATOMIC_RELAXED) == NO_THREADS)) {
        __atomic_store_n(&inherited, THREADS, __ATOMIC_RELAXED);
        log_silence(runtime_is_sandboxed());
    }
}

bool runtime_is_sandboxed(void)
{
    return HY_UNLIKELY(__atomic_load_n(&sandboxed, __ATOMIC_SEQ_CST));
}
