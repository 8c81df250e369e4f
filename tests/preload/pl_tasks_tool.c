/* SPDX-License-Identifier: BSD-2-Clause
 * Somebody else's OMPT tool (OMP_TOOL_LIBRARIES), as a profiler is one: counts tasks that are made
 * and says at the end how many. */
#include <omp-tools.h>
#include <stdio.h>

static unsigned long made;

static void count(ompt_data_t *by, const ompt_frame_t *frame, ompt_data_t *task, int flags,
                  int needs, const void *code)
{
    (void)by, (void)frame, (void)task, (void)needs, (void)code;
    if (flags & ompt_task_explicit)
        __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
}

static int begin(ompt_function_lookup_t lookup, int device, ompt_data_t *tool)
{
    ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
    (void)device, (void)tool;
    return set && set(ompt_callback_task_create, (ompt_callback_t)count) == ompt_set_always;
}

static void end(ompt_data_t *tool)
{
    (void)tool;
    printf("tool: %lu tasks\n", made);
}

ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *runtime)
{
    static ompt_start_tool_result_t r = {begin, end, {0}};
    (void)version, (void)runtime;
    return &r;
}
