// SPDX-License-Identifier: BSD-2-Clause
// Waits of C++20 and POSIX in instrumented code: what they do, and how long they last in
// virtual time ('took NAME us'). 'Work' is 100 us of it.
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <future>
#include <latch>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <semaphore>
#include <semaphore.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "pmemu.h"

using namespace std::chrono_literals;

static unsigned long sink;

static void work()
{
    int64_t t = pmemu_vtime_ns();
    unsigned long x = 1;
    do
        for (int i = 0; i < 1000; i++)
            x = x * 6364136223846793005u + 1442695040888963407u;
    while (pmemu_vtime_ns() - t < 100000);
    sink = x;
}

// Virtual time of f() in us.
template <class F> static void took(const char *name, F f)
{
    int64_t t = pmemu_vtime_ns();
    f();
    printf("took %s %lld\n", name, static_cast<long long>((pmemu_vtime_ns() - t) / 1000));
}

// The caller waits for a thread that works first.
template <class Wait, class Wake> static void handed(const char *name, Wait wait, Wake wake)
{
    took(name, [&] {
        std::thread t([&] {
            work();
            wake();
            work(); // not waited for
            work();
        });
        wait();
        t.detach();
    });
}

static void *sleeps(void *)
{
    pause();
    return nullptr;
}

static void *waits(void *p)
{
    auto *m = static_cast<pthread_mutex_t *>(p);
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(m);
    pthread_cleanup_push([](void *q) { pthread_mutex_unlock(static_cast<pthread_mutex_t *>(q)); },
                         p);
    for (;;)
        pthread_cond_wait(&never, m);
    pthread_cleanup_pop(1);
    return nullptr;
}

static bool canceled(void *(*run)(void *), void *arg)
{
    pthread_t t;
    void *r = nullptr;
    pthread_create(&t, nullptr, run, arg);
    usleep(1000);
    pthread_cancel(t);
    pthread_join(t, &r);
    return r == PTHREAD_CANCELED;
}

static std::mutex mutex;
static std::condition_variable changed;

// One thread waits for what another one does.
static void handed_on()
{
    static std::latch latch(1);
    static std::counting_semaphore<8> semaphore(0);
    static std::atomic<int> flag{0}, spun{0};
    static std::promise<int> promise;
    static sem_t posix;
    static bool ready;
    static int pipe_ends[2];

    handed(
        "latch", [] { latch.wait(); }, [] { latch.count_down(); });
    handed(
        "semaphore", [] { semaphore.acquire(); }, [] { semaphore.release(); });
    handed(
        "atomic", [] { flag.wait(0); },
        [] {
            flag = 1;
            flag.notify_all();
        });
    handed(
        "future", [] { promise.get_future().get(); }, [] { promise.set_value(1); });
    sem_init(&posix, 0, 0);
    handed(
        "sem", [] { sem_wait(&posix); }, [] { sem_post(&posix); });
    handed(
        "condition",
        [] {
            std::unique_lock l(mutex);
            changed.wait_for(l, 10s, [] { return ready; });
        },
        [] {
            std::lock_guard l(mutex);
            ready = true;
            changed.notify_one();
        });
    handed(
        "spin",
        [] {
            while (spun.load() == 0)
                ;
        },
        [] { spun = 1; });
    if (pipe(pipe_ends) == 0)
        handed(
            "poll",
            [] {
                pollfd p = {pipe_ends[0], POLLIN, 0};
                poll(&p, 1, -1);
            },
            [] { (void)!write(pipe_ends[1], "x", 1); });
}

// What takes time by itself.
static void spent()
{
    took("sleep", [] { std::this_thread::sleep_for(3ms); });
    took("usleep", [] { usleep(2000); });
    took("wait_for", [] {
        std::unique_lock l(mutex);
        changed.wait_for(l, 2ms, [] { return false; });
    });
    took("poll_timeout", [] { poll(nullptr, 0, 3); });
    took("beside_sleep", [] { // one sleeps, one works: the longer counts
        std::thread t([] { usleep(50); });
        work();
        t.join();
    });
    took("child", [] {
        pid_t p = fork();
        if (p == 0) {
            work();
            _exit(0);
        }
        waitpid(p, nullptr, 0);
    });
    took("barrier", [] {
        std::barrier all(4);
        std::thread t[3];
        auto run = [&] {
            for (int i = 0; i < 5; i++) {
                work();
                all.arrive_and_wait();
            }
        };
        for (auto &x : t)
            x = std::thread(run);
        run();
        for (auto &x : t)
            x.join();
    });
}

int main()
{
    handed_on();
    spent();

    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    printf("canceled %d %d\n", canceled(sleeps, nullptr), canceled(waits, &m));
    printf("mutex free %d\n", pthread_mutex_trylock(&m) == 0);
    usleep(3000); // those that were detached
    return 0;
}
