/* SPDX-License-Identifier: BSD-2-Clause
 * CPUs that participants are confined to, through the registry: each tells its own and sees those
 * of the others. */
#include <string.h>

#include "core/pause.h"
#include "place/company.h"
#include "place/company_internal.h"
#include "place/policy.h"
#include "sys/os.h"

void policy_exchange_cpus(const struct hy_cpus *mine, struct cpus_of_others *ret)
{
    memset(ret, 0, sizeof(*ret));
    hy_lock_take(&company_lock);
    if (cpus_count(mine) > 0)
        company_join_locked();
    if (hy_pol.reg_state == REG_JOINED) {
        registry_publish_cpus(hy_pol.reg, mine->word);
        (void)company_read_locked(COMPANY_AGE_NS);
        registry_cpus_of_others(&hy_pol.view, ret);
    }
    hy_lock_release(&company_lock);
}

bool policy_peek_cpus(struct cpus_of_others *ret)
{
    char path[HY_PATH_MAX] = "";
    struct registry *r;

    memset(ret, 0, sizeof(*ret));
    share_path(path, sizeof(path));
    if (runtime_is_sandboxed() || !path[0] || !os_file_exists(path) || !runtime_lets_threads())
        return false;
    if (!hy_lock_try(&company_lock))
        return false;
    if (hy_pol.reg_state == REG_JOINED) {
        registry_cpus_of_others(&hy_pol.view, ret);
    } else if (registry_open_readonly(path, &r) == 0) {
        registry_read(r, &hy_pol.view);
        registry_cpus_of_others(&hy_pol.view, ret);
        registry_close(r);
    }
    hy_lock_release(&company_lock);
    return ret->confined > 0;
}
