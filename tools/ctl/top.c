/* SPDX-License-Identifier: BSD-2-Clause
 * hybridctl top: the registry, live. Plain ANSI sequences, as all that is needed of a terminal
 * is to go home, to clear and a few colours; whatever ends the display gives the
 * terminal back as it was. */
#include "tools/ctl/top.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/env.h"
#include "sys/os.h"

#define PLAIN_WIDTH 120u /* where there is no screen */

static struct top_screen screen; /* ~100 KiB: not for the stack */

/* --- the terminal ---------------------------------------------------------------- */

static struct termios first; /* as it was */
static bool have_keys;       /* standard input is the terminal, and was changed */
static volatile sig_atomic_t ended, stopped, resized;

static void on_signal(int sig)
{
    if (sig == SIGTSTP)
        stopped = 1;
    else if (sig == SIGWINCH)
        resized = 1;
    else
        ended = sig;
}

static void take_terminal(void)
{
    have_keys = tcgetattr(STDIN_FILENO, &first) == 0;
    if (have_keys) {
        struct termios t = first;
        t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        t.c_cc[VMIN] = 1;
        t.c_cc[VTIME] = 0;
        have_keys = tcsetattr(STDIN_FILENO, TCSANOW, &t) == 0;
    }
    fputs("\033[?1049h\033[2J\033[?25l", stdout); /* the other screen, no cursor */
}

static void give_terminal_back(void)
{
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    if (have_keys)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &first);
}

static void watch_signals(void)
{
    static const int sigs[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
    struct sigaction a = {.sa_handler = on_signal}; /* no SA_RESTART: poll comes back */

    for (size_t i = 0; i < HY_ARRAY_SIZE(sigs); i++)
        (void)sigaction(sigs[i], &a, NULL);
    (void)signal(SIGPIPE, SIG_IGN); /* seen by fflush */
}

/* Ctrl-Z: the shell gets its screen, and we ours when it lets us go on. */
static void stop_here(void)
{
    stopped = 0;
    give_terminal_back();
    (void)raise(SIGSTOP);
    take_terminal();
}

static void draw(bool colour)
{
    unsigned width = 80, height = 24;

    ctl_screen_size(&width, &height);
    top_sort(&screen);
    fputs("\033[H", stdout);
    top_print(&screen, stdout, width, height, colour, true);
}

/* --- keys ------------------------------------------------------------------------- */

/* false: quit. */
static bool key_pressed(char c)
{
    const char *at = c ? strchr(top_letters, c) : NULL;

    if (c == 'q' || c == 'Q' || c == 3)
        return false;
    if (c == 'r')
        screen.reverse = !screen.reverse;
    else if (at)
        screen.key = (enum top_key)(at - top_letters);
    return true;
}

/* An arrow or the like is no letter: where it ends. */
static ssize_t after_sequence(const char *keys, ssize_t i, ssize_t n)
{
    i++;
    if (i == n || (keys[i] != '[' && keys[i] != 'O'))
        return i;
    for (i++; i < n && (keys[i] < '@' || keys[i] > '~'); i++)
        ;
    return HY_MIN(i + 1, n);
}

/* Wait for a key, a signal, or until `until`. false: quit. *ret_again: look anew. */
static bool wait_for(uint64_t until, bool *ret_look)
{
    uint64_t now = os_now_ns();
    struct pollfd p = {.fd = have_keys ? STDIN_FILENO : -1, .events = POLLIN};
    int ms = until > now ? (int)HY_MIN((until - now) / 1000000 + 1, (uint64_t)INT_MAX) : 0;
    char keys[64];

    *ret_look = now >= until;
    if (*ret_look || poll(&p, 1, ms) <= 0 || p.revents == 0)
        return !ended;
    ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));
    if (n < 0 && errno == EINTR)
        return !ended;
    if (n <= 0) /* the terminal has gone */
        return false;
    for (ssize_t i = 0; i < n; i++) {
        if (keys[i] == '\033') {
            i = after_sequence(keys, i, n) - 1;
            continue;
        }
        *ret_look |= keys[i] == ' ';
        if (!key_pressed(keys[i]))
            return false;
    }
    return !ended;
}

static int live(uint64_t interval_ns)
{
    uint64_t next = 0;
    int error = 0;
    bool look = true, colour = ctl_use_colour();

    if (top_look(&screen) != 0)
        return CTL_PASSIVE;
    watch_signals();
    take_terminal();
    for (bool on = true; on && !ended;) {
        if (look) {
            error = top_look(&screen);
            if (error != 0)
                break;
            next = os_now_ns() + interval_ns;
        }
        draw(colour);
        if (fflush(stdout) != 0 && (errno != EINTR || ended))
            break; /* interrupted by a new size of the terminal it is drawn again */
        on = wait_for(next, &look);
        if (stopped)
            stop_here();
    }
    give_terminal_back();
    if (error)
        (void)top_look(&screen); /* told where it can be seen */
    if (ended) {                 /* the caller shall see what ended us */
        (void)signal(ended, SIG_DFL);
        (void)raise(ended);
    }
    return error ? CTL_PASSIVE : CTL_OK;
}

/* --- without a terminal --------------------------------------------------------------- */

/* Lines or JSON, a look each interval; `once`: rates need two looks, the second is shown. */
static int plain(uint64_t interval_ns, bool once, bool json)
{
    for (bool first_look = true;; first_look = false) {
        if (top_look(&screen) != 0)
            return CTL_PASSIVE;
        if (!once || !first_look || !screen.exists) {
            top_sort(&screen);
            if (json)
                top_json(&screen, stdout);
            else
                top_print(&screen, stdout, PLAIN_WIDTH, UINT32_MAX, false, false);
            if (fflush(stdout) != 0 || once)
                return screen.exists ? CTL_OK : CTL_PASSIVE;
        }
        os_sleep_ns(interval_ns);
    }
}

static bool has_screen(void)
{
    const char *term = env_get("TERM");
    return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

/* Seconds as 2 or 0.5; false: told on stderr. */
static bool parse_interval(const char *s, uint64_t *ret_ns)
{
    double v;

    if (text_parse_decimal(s, strlen(s), &v) < 0 || v < 0.1 || v > 3600) {
        ctl_error("--interval takes seconds from 0.1 to 3600, not '%s'", s);
        return false;
    }
    *ret_ns = (uint64_t)(v * 1e9);
    return true;
}

static bool parse_key(const char *s, enum top_key *ret)
{
    int i = text_choice(top_keys, s, strlen(s));
    char prose[128];

    if (i < 0) {
        text_choices_prose(top_keys, prose, sizeof(prose));
        ctl_error("--sort takes %s, not '%s'", prose, s);
        return false;
    }
    *ret = (enum top_key)i;
    return true;
}

int ctl_top(int argc, char **argv)
{
    static const struct option long_options[] = {{"interval", required_argument, NULL, 'i'},
                                                 {"once", no_argument, NULL, 'o'},
                                                 {"json", no_argument, NULL, 'j'},
                                                 {"registry", required_argument, NULL, 'r'},
                                                 {"sort", required_argument, NULL, 's'},
                                                 {"reverse", no_argument, NULL, 'R'},
                                                 {0}};
    bool json = false, once = false;
    const char *registry = NULL;
    uint64_t interval_ns = 1000000000;
    int c;

    while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (c == 'j')
            json = true;
        else if (c == 'o')
            once = true;
        else if (c == 'r')
            registry = optarg;
        else if (c == 'R')
            screen.reverse = true;
        else if ((c != 'i' || !parse_interval(optarg, &interval_ns)) &&
                 (c != 's' || !parse_key(optarg, &screen.key)))
            return CTL_USAGE;
    }
    if (optind < argc) {
        ctl_error("top takes no argument '%s'", argv[optind]);
        return CTL_USAGE;
    }
    screen.path = ctl_registry_path(registry);
    if (!screen.path)
        return CTL_PASSIVE;
    return once || json || !has_screen() ? plain(interval_ns, once, json) : live(interval_ns);
}
