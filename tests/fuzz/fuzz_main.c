/* SPDX-License-Identifier: BSD-2-Clause
 * A plain driver for the fuzz targets, for compilers without libFuzzer and for
 * the bounded run in the test suite: every file of the corpus as it is, then
 * random changes of them for some seconds. Change N of seed S is the same
 * everywhere, so a failure can be repeated; it is also left as a file
 * fuzz-failure in the working directory (add it to the corpus).
 *
 * fuzz_X [-seconds=N] [-runs=N] [-seed=N] [FILE|DIRECTORY]... */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define INPUT_MAX  ((size_t)1 << 16)
#define MAX_CORPUS 1024

struct input {
    uint8_t *data;
    size_t size;
};

static struct input corpus[MAX_CORPUS];
static unsigned n_corpus;
static uint8_t current[INPUT_MAX];
static size_t current_size;

/* Of AddressSanitizer, which ends the process without a signal. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void keep_failure(void)
{
    static const char said[] = "input kept in ./fuzz-failure\n";
    int fd = open("fuzz-failure", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd >= 0 && write(fd, current, current_size) == (ssize_t)current_size)
        (void)!write(STDERR_FILENO, said, sizeof(said) - 1);
}

static void on_death(int sig)
{
    keep_failure();
    signal(sig, SIG_DFL);
    raise(sig);
}

static uint64_t rng;

static uint64_t next(void) /* splitmix64: the whole state is one number, set per run */
{
    uint64_t z = rng += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static size_t below(size_t n)
{
    return n == 0 ? 0 : (size_t)(next() % n);
}

static void insert(size_t at, const void *data, size_t n)
{
    if (n > INPUT_MAX - current_size)
        n = INPUT_MAX - current_size;
    memmove(current + at + n, current + at, current_size - at);
    memcpy(current + at, data, n);
    current_size += n;
}

/* What the parsers know. */
static const char *const tokens[] = {"\n",
                                     "=",
                                     "[",
                                     "]",
                                     "[site a]\n",
                                     "[app]\n",
                                     "frame0 = ",
                                     "+0x",
                                     ":",
                                     ";",
                                     "#",
                                     "%",
                                     ",",
                                     "-1",
                                     "0",
                                     "18446744073709551616",
                                     "99999999999999999999999999999999",
                                     "T",
                                     "K",
                                     "\xff\xfe",
                                     "\xc3\xa9",
                                     "\xe2\x80\xae",
                                     "\x1b[2J",
                                     "\t ",
                                     "node:",
                                     "emulated:",
                                     "HYBRID_",
                                     "@",
                                     "/"};

static void change_once(void)
{
    static uint8_t piece[256];
    size_t at = below(current_size), n = 1 + below(16);
    const struct input *other;
    const char *token;

    if (n > current_size - at)
        n = current_size - at;
    switch (below(8)) {
    case 0:
        if (n > 0)
            current[at] ^= (uint8_t)(1u << below(8));
        break;
    case 1:
        if (n > 0)
            current[at] = (uint8_t)next();
        break;
    case 2:
        memmove(current + at, current + at + n, current_size - at - n);
        current_size -= n;
        break;
    case 3:
        token = tokens[below(sizeof(tokens) / sizeof(tokens[0]))];
        insert(at, token, strlen(token));
        break;
    case 4: /* a piece again, up to some thousand times now and then */
        memcpy(piece, current + at, n);
        for (size_t k = below(8) == 0 ? below(4000) : 1; k > 0 && n > 0; k--)
            insert(at, piece, n);
        break;
    case 5:
        other = &corpus[below(n_corpus)];
        n = below(other->size < sizeof(piece) ? other->size + 1 : sizeof(piece));
        insert(at, other->data + below(other->size - n + 1), n);
        break;
    case 6:
        current_size = at;
        break;
    default:
        for (size_t i = 0; i < n; i++)
            piece[i] = (uint8_t)next();
        insert(at, piece, n);
    }
}

static void run_changed(uint64_t seed, uint64_t n)
{
    const struct input *from;

    rng = seed * 0x2545f4914f6cdd1du + n;
    from = &corpus[below(n_corpus)];
    memcpy(current, from->data, from->size);
    current_size = from->size;
    for (size_t k = 1 + below(12); k > 0; k--)
        change_once();
    /* A heap block of the exact size, so that sanitizers and valgrind see an overread. */
    uint8_t *exact = malloc(current_size ? current_size : 1);

    CHECK(exact);
    memcpy(exact, current, current_size);
    LLVMFuzzerTestOneInput(exact, current_size);
    free(exact);
}

static void add_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct input *in = &corpus[n_corpus];

    if (!f || n_corpus == MAX_CORPUS - 1) {
        fprintf(stderr, "%s: %s\n", path, f ? "too many files" : strerror(errno));
        exit(2);
    }
    in->size = fread(current, 1, sizeof(current), f);
    fclose(f);
    in->data = malloc(in->size ? in->size : 1);
    CHECK(in->data);
    memcpy(in->data, current, in->size);
    n_corpus++;
}

static void add(const char *path)
{
    struct dirent **names;
    struct stat st;
    char file[4096];
    int n;

    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        add_file(path);
        return;
    }
    n = scandir(path, &names, NULL, alphasort); /* sorted: the same run everywhere */
    for (int i = 0; i < n; i++) {
        snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.')
            add_file(file);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
}

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t); /* the time of day may be set back */
    return (uint64_t)t.tv_sec;
}

int main(int argc, char **argv)
{
    static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    uint64_t seconds = 5, runs = UINT64_MAX, seed = 1, n = 0;
    unsigned long long value;
    uint64_t start;

    for (int i = 1; i < argc; i++)
        if (sscanf(argv[i], "-seconds=%llu", &value) == 1)
            seconds = value;
        else if (sscanf(argv[i], "-runs=%llu", &value) == 1)
            runs = value;
        else if (sscanf(argv[i], "-seed=%llu", &value) == 1)
            seed = value;
        else
            add(argv[i]);
    for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++)
        signal(deadly[i], on_death);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(keep_failure);
    for (unsigned i = 0; i < n_corpus; i++) {
        current_size = corpus[i].size;
        memcpy(current, corpus[i].data, current_size);
        LLVMFuzzerTestOneInput(corpus[i].data, corpus[i].size);
    }
    printf("%u files of the corpus\n", n_corpus);
    if (n_corpus == 0) /* an empty corpus would test next to nothing, silently */
        return 2;
    start = now();
    while (n < runs && now() - start < seconds)
        run_changed(seed, n++);
    printf("%llu changed inputs, seed %llu\n", (unsigned long long)n, (unsigned long long)seed);
    return 0;
}
