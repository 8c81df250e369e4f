/* SPDX-License-Identifier: BSD-2-Clause */
#include "threads/check.h"

#include <string.h>

#include "core/purse.h"
#include "settings/settings.h"
#include "sys/log.h"
#include "threads/rules/thread_trial.h"

/* All threads must be faster than the profile's count by so much. */
#define FASTER 1.02
/* A program that changes all the time cannot be checked with windows longer than that. */
#define SCALE_MOST 16u

static struct {
    bool begun, doubted, done, given_up;
    struct thread_trial trial;
} check;

static unsigned count_of_profile(void)
{
    const struct hy_thread_spec *s = &hy_config.set.threads;
    return s->off || s->count || !hy_config.have_profile ? 0 : hy_config.profile.threads[HY_PM];
}

bool threadcheck_wanted(void)
{
    return count_of_profile() > 0;
}

static void judged(unsigned n, unsigned most)
{
    unsigned scale = check.trial.scale;

    switch (thread_trial_verdict(&check.trial, FASTER)) {
    case TRIAL_OPEN:
        return;
    case TRIAL_UNCLEAR:
        if (scale < SCALE_MOST) {
            thread_trial_next(&check.trial, most, 2 * scale, 0);
            return;
        }
        break;
    case TRIAL_BETTER:
        if (!check.doubted) { /* one look may be luck: a longer one shall say the same */
            check.doubted = true;
            thread_trial_next(&check.trial, most, HY_MIN(4 * scale, SCALE_MOST), 0);
            return;
        }
        check.given_up = true;
        log_info("threads: the profile's %u on PM are given up: with %u it is %.2f times as fast",
                 n, most, thread_trial_gain(&check.trial));
        break;
    case TRIAL_WORSE:
        break;
    }
    check.done = true;
}

void threadcheck_window(double work, double time_ns, unsigned most)
{
    unsigned n = count_of_profile();
    struct regret *purse;
    double run_ns;
    bool round;

    if (check.done || most <= n)
        return;
    if (!check.begun || most > check.trial.count) {
        threadcheck_stop();
        thread_trial_base(&check.trial, n);
        thread_trial_next(&check.trial, most, 1, 0);
        check.begun = true;
    }
    purse = purse_open(&run_ns);
    round = thread_trial_window(&check.trial, purse, run_ns, work, time_ns);
    purse_close();
    if (round)
        judged(n, most);
}

void threadcheck_stop(void)
{
    if (!check.begun)
        return;
    thread_trial_stop(&check.trial, purse_open(NULL));
    purse_close();
}

bool threadcheck_opens(void)
{
    return check.trial.other;
}

bool threadcheck_given_up(void)
{
    return check.given_up;
}

void threadcheck_child(void)
{
    memset(&check, 0, sizeof(check));
}
