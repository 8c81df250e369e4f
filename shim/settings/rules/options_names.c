/* SPDX-License-Identifier: BSD-2-Clause
 * Options by the names that users give them. */
#include <string.h>

#include "base/text.h"
#include "settings/rules/options.h"

#define PREFIX     "HYBRID_"
#define PREFIX_LEN (sizeof(PREFIX) - 1)
#define EMULATOR   "HYBRID_EMU_"

enum hy_opt_id options_by_env(const char *name, size_t len)
{
    if (len < PREFIX_LEN || !text_same(name, PREFIX, PREFIX_LEN))
        return OPT_COUNT;
    for (unsigned i = 0; i < OPT_COUNT; i++) {
        const char *env = options_info((enum hy_opt_id)i)->env;

        if (text_same(env + PREFIX_LEN, name + PREFIX_LEN, len - PREFIX_LEN) && env[len] == '\0')
            return (enum hy_opt_id)i;
    }
    return OPT_COUNT;
}

enum hy_opt_id options_by_key(const char *key)
{
    for (unsigned i = 0; i < OPT_COUNT; i++) {
        const char *own = options_info((enum hy_opt_id)i)->key, *at = key;

        while (*own != '\0' && (*own == *at || (*own == '_' && *at == '-')))
            own++, at++;
        if (*own == '\0' && *at == '\0')
            return (enum hy_opt_id)i;
    }
    return OPT_COUNT;
}

enum hy_opt_id options_nearest(const char *name, size_t len)
{
    unsigned best = ~0u;
    enum hy_opt_id id = OPT_COUNT;

    if (len > PREFIX_LEN && memcmp(name, PREFIX, PREFIX_LEN) == 0) {
        name += PREFIX_LEN;
        len -= PREFIX_LEN;
    }
    for (unsigned i = 0; i < OPT_COUNT; i++) {
        const char *key = options_info((enum hy_opt_id)i)->key;
        unsigned d = text_distance(name, len, key, strlen(key));

        if (d < best && text_is_near(d, HY_MAX(len, strlen(key)))) {
            best = d;
            id = (enum hy_opt_id)i;
        }
    }
    return id;
}

void options_unknown_env(const char *name, size_t len, hy_diag_fn diag, void *ctx)
{
    enum hy_opt_id near = options_nearest(name, len);
    char quoted[TEXT_QUOTE_CAP];

    if (len >= sizeof(EMULATOR) - 1 && memcmp(name, EMULATOR, sizeof(EMULATOR) - 1) == 0)
        return;
    text_quote(name, len, quoted, sizeof(quoted));
    if (near == OPT_COUNT)
        options_tell(diag, ctx, "%s is not an option of libhybrid and is ignored", quoted);
    else
        options_tell(diag, ctx, "%s is not an option of libhybrid and is ignored; did you mean %s?",
                     quoted, options_info(near)->env);
}
