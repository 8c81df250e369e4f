/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/ctl/rules/options_words.h"

#define TYPE_DECIMAL "number"
#define TYPE_MACHINE "machine"
#define TYPE_SOURCE  "source"
#define TYPE_CHOICE  "choice"
#define TYPE_FLAG    "flag"
#define TYPE_SIZE    "size"
#define TYPE_AMOUNT  "amount"
#define TYPE_TIME    "time"
#define TYPE_PM      "memory"
#define TYPE_REPORT  "report"
#define TYPE_NAME    "name"
#define TYPE_THREADS "threads"
#define TYPE_WAIT    "wait"
#define TYPE_DIRS    "directories"
#define TYPE_FILE    "path"

const struct hy_opt_words *options_words(enum hy_opt_id id)
{
    static const struct hy_opt_words words[OPT_COUNT] = {
#define HY_OPT(id, key, field, type, where, dflt, lo, hi, allowed, unit, help)                     \
    {TYPE_##type, unit, help},
#include "settings/rules/options.def"
#undef HY_OPT
    };
    return (unsigned)id < OPT_COUNT ? &words[id] : NULL;
}
