/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/ctl/rules/options_words.h"

const struct hy_opt_words *options_words(enum hy_opt_id id)
{
    static const struct hy_opt_words words[OPT_COUNT] = {
#define HY_OPT(id, key, field, type, where, dflt, lo, hi, allowed, unit, help) {#type, unit, help},
#include "settings/rules/options.def"
#undef HY_OPT
    };
    return (unsigned)id < OPT_COUNT ? &words[id] : NULL;
}
