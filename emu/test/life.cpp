// SPDX-License-Identifier: BSD-2-Clause
// What real programs do to a runtime: OpenMP teams, exceptions, a condition variable,
// signal handlers in instrumented code, a jump out of one, fork.
#include <condition_variable>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static sigjmp_buf out;
static volatile int signals;
static std::vector<double> numbers(1 << 20), ones(1 << 20, 1.0);

static void count(int)
{
    signals = signals + 1;
    numbers[0] = signals;
}

static void jump_out(int)
{
    signals = signals + 1;
    siglongjmp(out, 1);
}

static void busy_until(int n)
{
    for (size_t i = 0; signals < n; i++)
        numbers[i * 4099 % numbers.size()] += 1;
}

/* A signal to the process goes to any thread that takes it: only main may jump to main's stack. */
static void alarms(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(how, &set, nullptr);
}

int main()
{
    double sum = 0;
    alarms(SIG_BLOCK); // the threads to come inherit it
    const int n = static_cast<int>(numbers.size());
#pragma omp parallel for
    for (int i = 0; i < n; i++)
        numbers[i] = ones[i] * 2;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 4096)
    for (int i = 0; i < n; i++)
        sum += numbers[i];
    printf("sum %.0f\n", sum);

    try {
        throw std::runtime_error("x");
    } catch (const std::exception &) {
        puts("caught");
    }

    std::mutex m;
    std::condition_variable changed;
    bool go = false;
    std::thread t([&] {
        std::unique_lock<std::mutex> lock(m);
        changed.wait(lock, [&] { return go; });
    });
    {
        std::lock_guard<std::mutex> lock(m);
        go = true;
    }
    changed.notify_all();
    t.join();
    puts("thread");

    signal(SIGALRM, count);
    alarms(SIG_UNBLOCK);
    ualarm(1000, 1000);
    busy_until(20);
    puts("signals");
    (void)sigsetjmp(out, 1); // before the handler: an alarm may be waiting
    signal(SIGALRM, jump_out);
    busy_until(40);
    ualarm(0, 0);
    puts("jumped");

    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        for (double &x : numbers)
            x = 1;
        puts("child");
        exit(3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
    return 0;
}
