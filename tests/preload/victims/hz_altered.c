/* SPDX-License-Identifier: BSD-2-Clause
 * Parts of blocks of malloc that the program protects, unmaps, moves away, locks, keeps from its
 * children or maps something else into, and then frees: what comes next in that place is ordinary
 * memory, nothing is written to the program's files, and while the block lives parent and child
 * have what they would have anywhere. `small`: blocks that libc's heap does not outlive. `numbers`:
 * by the numbers of the calls instead of their names. */
#include "victim.h"

#include <malloc.h>
#include <stdbool.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#define KIB  ((size_t)1 << 10)
#define PAGE ((size_t)4096)
#define NEXT 12

static int file = -1, segment = -1;
static bool numbers;
/* Of the kernel's results, -1 is the only failure, by number as by name. */
#define CALL(name, ...)                                                                            \
    (numbers ? (void *)syscall(SYS_##name, __VA_ARGS__) : (void *)(intptr_t)name(__VA_ARGS__))

static const char told[] = "the program's own";

static size_t locked(void)
{
    char buf[4096], *at;
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);
    CHECK(n > 0);
    close(fd);
    buf[n] = 0;
    CHECK((at = strstr(buf, "VmLck:")) != NULL);
    return strtoul(at + 6, NULL, 10);
}

static void in_child(const char *p, const char *wanted, size_t n)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(memcmp(p, wanted, n) != 0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void killed_in_child(char *p, bool by_write)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        if (by_write)
            *(volatile char *)p = 1;
        _exit(*(volatile char *)p & 0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

/* --- the ways ------------------------------------------------------------------------- */

static void no_access(char *p, size_t n)
{
    CHECK(CALL(mprotect, p, n, PROT_NONE) == NULL);
    killed_in_child(p, false);
}

static void read_only(char *p, size_t n)
{
    memcpy(p, told, sizeof told);
    CHECK(CALL(mprotect, p, n, PROT_READ) == NULL && strcmp(p, told) == 0);
    in_child(p, told, sizeof told);
    killed_in_child(p, true);
}

static void executable(char *p, size_t n)
{
#ifdef __x86_64__
    static const unsigned char code[] = {0xb8, 42, 0, 0, 0, 0xc3};
    int status;
    memcpy(p, code, sizeof code);
    CHECK(CALL(mprotect, p, n, PROT_READ | PROT_EXEC) == NULL);
    for (int i = 0; i < 2; i++) {
        CHECK(((int (*)(void))(uintptr_t)p)() == 42);
        pid_t child = fork();
        if (child == 0)
            _exit(((int (*)(void))(uintptr_t)p)());
        CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 42);
    }
#else
    (void)p;
    (void)n;
#endif
}

static void unmapped(char *p, size_t n)
{
    CHECK(CALL(munmap, p, n) == NULL && !is_mapped(p, n));
    killed_in_child(p, false);
    CHECK(!is_mapped(p, n));
}

static void moved(char *p, size_t n)
{
    memcpy(p, told, sizeof told);
    char *q = CALL(mremap, p, n, n, MREMAP_MAYMOVE | MREMAP_FIXED,
                   mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(q != MAP_FAILED && strcmp(q, told) == 0 && !is_mapped(p, n));
    in_child(q, told, sizeof told);
    CHECK(munmap(q, n) == 0);
}

static void grown(char *p, size_t n)
{
    memcpy(p, told, sizeof told);
    char *q = CALL(mremap, p, n, 64 * n, MREMAP_MAYMOVE);
    CHECK(q != MAP_FAILED && strcmp(q, told) == 0);
    q[64 * n - 1] = 1;
    CHECK(munmap(q, 64 * n) == 0);
}

static void onto_it(char *p, size_t n)
{
    char *q = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(q != MAP_FAILED);
    memcpy(q, told, sizeof told);
    CHECK(CALL(mremap, q, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, p) == p && strcmp(p, told) == 0);
    in_child(p, told, sizeof told);
    CHECK(strcmp(p, told) == 0);
}

static void of_a_file(char *p, size_t n)
{
    CHECK(CALL(mmap, p, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == p);
    CHECK(strcmp(p, told) == 0);
    in_child(p, told, sizeof told);
    memcpy(p + 64, told, sizeof told);
    char there[sizeof told];
    CHECK(pread(file, there, sizeof there, 64) == sizeof there && strcmp(there, told) == 0);
}

static void of_its_own(char *p, size_t n)
{
    CHECK(CALL(mmap, p, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
               0) == p);
    CHECK(all_zero(p, n));
    memcpy(p, told, sizeof told);
    in_child(p, told, sizeof told);
    CHECK(strcmp(p, told) == 0);
}

/* What parent and child share stays shared. */
static void shared(char *p, size_t n)
{
    int status;
    CHECK(CALL(mmap, p, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
          p);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        memcpy(p, told, sizeof told);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0 && strcmp(p, told) == 0);
}

static void of_a_segment(char *p, size_t n)
{
    (void)n;
    if (segment < 0)
        return;
    void *at = CALL(shmat, segment, p, SHM_REMAP);
    CHECK(at == p);
    memcpy(p, told, sizeof told);
    in_child(p, told, sizeof told);
    char *q = shmat(segment, NULL, 0);
    CHECK(q != (void *)-1 && strcmp(q, told) == 0 && shmdt(q) == 0);
}

static void not_for_children(char *p, size_t n)
{
    CHECK(CALL(madvise, p, n, MADV_DONTFORK) == NULL);
    killed_in_child(p, false);
}

static void wiped(char *p, size_t n)
{
    *p = 1;
    CHECK(CALL(madvise, p, n, MADV_WIPEONFORK) == NULL);
    in_child(p, "", 1);
}

static void in_memory(char *p, size_t n)
{
    CHECK(CALL(mlock, p, n) == NULL);
    in_child(p, p, n);
    CHECK(locked() >= n / KIB);
}

static const struct way {
    const char *name;
    void (*fn)(char *p, size_t n);
} way[] = {
    {"no access", no_access},
    {"read only", read_only},
    {"executable", executable},
    {"unmapped", unmapped},
    {"moved", moved},
    {"grown", grown},
    {"another moved onto it", onto_it},
    {"of a file", of_a_file},
    {"of its own", of_its_own},
    {"shared", shared},
    {"of a segment", of_a_segment},
    {"not for children", not_for_children},
    {"wiped", wiped},
    {"in memory", in_memory},
};

/* --- what comes next ------------------------------------------------------------------- */

static void next_blocks(size_t n)
{
    char *b[NEXT];
    int status;
    for (int i = 0; i < NEXT; i++) {
        b[i] = i % 2 ? malloc(n) : aligned_alloc(PAGE, n);
        CHECK(b[i]);
        fill(b[i], n, (uint64_t)i + 7);
    }
    pid_t child = fork();
    CHECK(child >= 0);
    for (int i = 0; i < NEXT; i++)
        if (!holds(b[i], n, (uint64_t)i + 7))
            _exit(child ? 98 : 97);
    if (child == 0)
        _exit(0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    for (int i = 0; i < NEXT; i++)
        free(b[i]);
    char *z = calloc(1, n);
    CHECK(z && all_zero(z, n));
    free(z);
}

static void try_one(const struct way *w, size_t n, size_t from, size_t bytes)
{
    size_t before = locked();
    char what[4096] = "", there[4096];
    memcpy(what, told, sizeof told);
    for (int round = 0; round < 2; round++) {
        CHECK(pwrite(file, what, sizeof what, 0) == sizeof what);
        char *p = aligned_alloc(PAGE, n), *q = aligned_alloc(PAGE, n);
        CHECK(p && q);
        fill(p, n, 1);
        fill(q, n, 2);
        w->fn(p + from, bytes);
        CHECK(holds(p, from, 1) && holds(q, n, 2));
        free(p);
        memcpy(there, what, sizeof there);
        if (w->fn == of_a_file)
            memcpy(there + 64, told, sizeof told);
        next_blocks(n);
        char now[sizeof there];
        CHECK(pread(file, now, sizeof now, 0) == sizeof now);
        CHECK(memcmp(now, there, sizeof now) == 0);
        CHECK(holds(q, n, 2));
        free(q);
    }
    if (locked() > before)
        printf("%s: %zu KiB stay locked\n", w->name, locked() - before);
}

int main(int argc, char **argv)
{
    bool small = argc > 1 && strcmp(argv[1], "small") == 0;
    numbers = argc > 1 && strcmp(argv[1], "numbers") == 0;
    static const size_t of_libc[] = {300 * KIB, 1100 * KIB},
                        of_ours[] = {4 * KIB, 8 * KIB, 16 * KIB, 28 * KIB, 100 * KIB};
    const size_t *size = small ? of_ours : of_libc;
    size_t sizes = small ? sizeof of_ours / sizeof *of_ours : sizeof of_libc / sizeof *of_libc;
    char name[] = "/tmp/hz_altered_XXXXXX";
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    CHECK((file = mkstemp(name)) >= 0 && unlink(name) == 0 && ftruncate(file, 64 << 20) == 0);
    segment = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
    for (size_t k = 0; k < sizeof way / sizeof *way; k++) {
        if (argc > 2 && strcmp(argv[2], way[k].name) != 0)
            continue;
        for (size_t s = 0; s < sizes; s++) {
            try_one(&way[k], size[s], size[s] > 12 * KIB ? PAGE : 0, PAGE);
            if (size[s] > 12 * KIB)
                try_one(&way[k], size[s], 2 * PAGE, size[s] - 2 * PAGE);
        }
    }
    if (segment >= 0)
        shmctl(segment, IPC_RMID, NULL);
    puts("ok");
    return 0;
}
