/* SPDX-License-Identifier: BSD-2-Clause */
#include "tasks/rules/task_known.h"

#include <string.h>

bool task_as_large(uint32_t pages, uint32_t others)
{
    return (uint64_t)others <= (uint64_t)pages + 1 && pages <= (uint64_t)others + 1;
}

static bool is_type(const struct profile_task *t, const struct hy_frame *code,
                    const uint32_t *pages, unsigned needs)
{
    if (t->needs != needs || t->code.offset != code->offset ||
        memcmp(t->code.build_id, code->build_id, BUILD_ID_MAX) != 0)
        return false;
    for (unsigned i = 0; i < needs; i++)
        if (!task_as_large((uint32_t)HY_MIN(t->bytes[i] / HY_PAGE, UINT32_MAX), pages[i]))
            return false;
    return true;
}

const struct profile_task *task_known(const struct profile *p, const struct hy_frame *code,
                                      const uint32_t *pages, unsigned needs)
{
    for (unsigned i = 0; i < p->n_tasks; i++)
        if (is_type(&p->tasks[i], code, pages, needs))
            return &p->tasks[i];
    return NULL;
}
