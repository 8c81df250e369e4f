/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/coverage.h"

uint64_t random_next(uint64_t *state)
{
    /* A counter through a mixing function: every state is a good one. */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 32) * 0xd6e8feb86659fd93u;
    z = (z ^ z >> 32) * 0xd6e8feb86659fd93u;
    return z ^ z >> 32;
}

uint64_t coverage_share(uint64_t blocks, uint64_t block_ns, uint64_t budget_ns)
{
    if (blocks <= COVERAGE_ALL)
        return blocks;
    uint64_t least = HY_MAX(blocks * COVERAGE_MIN / 100, (uint64_t)COVERAGE_ALL);
    uint64_t most = HY_MAX(blocks * COVERAGE_MAX / 100, (uint64_t)COVERAGE_ALL);
    uint64_t paid = block_ns > 0 ? budget_ns / block_ns : most;
    return HY_MIN(HY_MAX(paid, least), most);
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static void begin_cycle(struct coverage *c, uint64_t blocks)
{
    c->blocks = blocks;
    c->done = 0;
    c->at = random_next(&c->random) % blocks;
    /* A step without a common divisor visits every block once. */
    do
        c->step = random_next(&c->random) % blocks + 1;
    while (common_divisor(c->step, blocks) != 1);
}

uint64_t coverage_next(struct coverage *c, uint64_t blocks)
{
    for (;;) {
        if (c->done == c->blocks || c->blocks / 4 > blocks)
            begin_cycle(c, blocks); /* also when most of it is gone: do not look for the rest */
        uint64_t at = c->at;
        c->at = (c->at + c->step) % c->blocks;
        c->done++;
        if (at < blocks)
            return at;
    }
}
