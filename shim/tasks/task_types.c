/* SPDX-License-Identifier: BSD-2-Clause */
#include "tasks/task_types.h"

#include <string.h>

#include "settings/settings.h"
#include "tasks/events.h"
#include "tasks/rules/task_known.h"
#include "tasks/staging.h"

_Static_assert(BUILD_ID_MAX == MODULE_ID_BYTES, "a module's id is a profile's build-id");
_Static_assert(TYPES_MOST <= PROFILE_MAX_TASKS && SHADOW_NEEDS <= PROFILE_MAX_NEEDS, "all fit");

/* All zero: not known. */
static struct hy_frame code_of(unsigned function)
{
    struct module code;
    uintptr_t offset;
    struct hy_frame f;
    memset(&f, 0, sizeof(f));
    if (tasks_code(function, &code, &offset) == 0) {
        memcpy(f.build_id, code.id, sizeof(f.build_id));
        f.offset = offset;
    }
    return f;
}

static void recall(struct task_type *t)
{
    const struct profile *p = &hy_config.profile;
    if (!hy_config.have_profile || p->n_tasks == 0)
        return;
    struct hy_frame code = code_of(t->function);
    const struct profile_task *known = task_known(p, &code, t->pages, t->needs);
    if (known)
        fit_recall(&t->fit, (double)known->ns[HY_DRAM], (double)known->ns[HY_PM]);
}

static bool is_of(const struct task_type *t, unsigned function, const uint32_t *pages,
                  unsigned needs)
{
    if (t->function != function || t->needs != needs)
        return false;
    for (unsigned i = 0; i < needs; i++)
        if (!task_as_large(t->pages[i], pages[i]))
            return false;
    return true;
}

unsigned types_of(struct task_types *t, unsigned function, const uint32_t *pages, unsigned needs)
{
    for (unsigned i = 0; i < t->n; i++)
        if (is_of(&t->type[i], function, pages, needs))
            return i;
    if (t->n == TYPES_MOST)
        return TYPE_NONE;
    struct task_type *new = &t->type[t->n];
    *new = (struct task_type){.function = (uint16_t)function, .needs = (uint8_t)needs};
    for (unsigned i = 0; i < needs; i++) {
        new->pages[i] = pages[i];
        new->all_pages += pages[i];
    }
    recall(new);
    return t->n++;
}

bool types_allow(struct task_types *t)
{
    struct account_sum s = {0};
    for (unsigned i = 0; i < t->n; i++)
        account_add(&s, &t->type[i].account);
    t->allowed = account_allows(&s, t->allowed);
    return t->allowed;
}

unsigned types_tell(const struct task_types *t, struct profile_task *ret)
{
    unsigned n = 0;
    for (unsigned i = 0; i < t->n; i++) {
        const struct task_type *x = &t->type[i];
        struct hy_frame code = code_of(x->function);
        double dram, pm;
        fit_tell(&x->fit, &dram, &pm);
        if (x->ran == 0 || x->all_pages == 0 || code.offset == 0 || dram + pm <= 0)
            continue;
        struct profile_task *to = &ret[n++];
        memset(to, 0, sizeof(*to));
        to->code = code;
        to->needs = x->needs;
        for (unsigned k = 0; k < x->needs; k++)
            to->bytes[k] = (uint64_t)x->pages[k] * HY_PAGE;
        to->count = x->ran;
        to->ns[HY_DRAM] = (uint64_t)dram;
        to->ns[HY_PM] = (uint64_t)pm;
    }
    return n;
}

unsigned types_view(const struct task_types *t, struct staging_type *ret, unsigned cap)
{
    unsigned off = 0;
    for (unsigned i = 0; i < t->n && i < cap; i++) {
        const struct task_type *x = &t->type[i];
        struct fit_line l = fit_line(&x->fit);
        struct hy_frame code = code_of(x->function);
        ret[i] = (struct staging_type){.offset = code.offset,
                                       .bytes = (uint64_t)x->all_pages * HY_PAGE,
                                       .ran = x->ran,
                                       .mean_ns = (uint64_t)fit_mean(&x->fit),
                                       .saving_ns = l.known ? (int64_t)l.saving : 0,
                                       .off = x->verdict.off};
        memcpy(ret[i].id, code.build_id, sizeof(ret[i].id));
    }
    for (unsigned i = 0; i < t->n; i++)
        off += t->type[i].verdict.off;
    return off;
}

bool types_hopeless(const struct task_types *t, unsigned function, double slowdown, double move_ns)
{
    bool any = false;
    for (unsigned i = 0; i < t->n; i++) {
        const struct task_type *x = &t->type[i];
        if (x->function != function)
            continue;
        any = true;
        if (!verdict_hopeless(&x->verdict, &x->fit, x->all_pages, x->uses, slowdown, move_ns))
            return false;
    }
    return any;
}
