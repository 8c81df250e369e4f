/* SPDX-License-Identifier: BSD-2-Clause
 * Blocks that libc allocates and the program frees, and the reverse. */
#include "victim.h"

#include <dirent.h>
#include <glob.h>
#include <limits.h>
#include <netdb.h>
#include <regex.h>
#include <search.h>
#include <wchar.h>

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void sort_many(void)
{
    int *big = malloc(400000 * sizeof *big);
    for (int i = 0; i < 400000; i++)
        big[i] = (int)((i * 2654435761u) & 0x7fffffff);
    qsort(big, 400000, sizeof *big, by_value); /* glibc sorts in a block of its own */
    for (int i = 1; i < 400000; i++)
        CHECK(big[i - 1] <= big[i]);
    free(big);
}

int main(void)
{
    char *line = NULL, *text = NULL, *path;
    size_t cap = 0, len = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    int lines = 0;
    while (getline(&line, &cap, f) > 0)
        lines++;
    fclose(f);
    CHECK(lines > 5);
    line = realloc(line, 100000);
    free(line);
    CHECK(asprintf(&text, "%0*d", 50000, 7) == 50000 && text[49999] == '7');
    free(text);
    CHECK((path = realpath("/proc/self/../self/fd", NULL)) != NULL);
    free(path);
    CHECK((path = getcwd(NULL, 0)) != NULL);
    free(path);
    f = open_memstream(&text, &len);
    for (int i = 0; i < 30000; i++)
        fprintf(f, "%d,", i);
    fclose(f);
    CHECK(len > 100000 && strlen(text) == len);
    free(text);
    struct dirent **names;
    int n = scandir("/", &names, NULL, alphasort);
    CHECK(n > 3);
    while (n--)
        free(names[n]);
    free(names);
    glob_t g;
    CHECK(glob("/*", 0, NULL, &g) == 0 && g.gl_pathc > 2);
    globfree(&g);
    regex_t re;
    CHECK(regcomp(&re, "a(b|c)*d{2,7}", REG_EXTENDED) == 0 && regexec(&re, "xxabcbcdd", 0, NULL, 0) == 0);
    regfree(&re);
    sort_many();
    for (int i = 0; i < 500; i++) {
        char name[40];
        snprintf(name, sizeof name, "VICTIM_%d", i);
        CHECK(setenv(name, "a value of some length", 1) == 0);
    }
    wchar_t *w = wcsdup(L"wide");
    free(w);
    struct addrinfo *ai = NULL;
    if (getaddrinfo("127.0.0.1", "80", NULL, &ai) == 0)
        freeaddrinfo(ai);
    char *buffered = malloc(1 << 16);
    f = tmpfile();
    setvbuf(f, buffered, _IOFBF, 1 << 16);
    for (int i = 0; i < 30000; i++)
        fputs("line\n", f);
    CHECK(ftell(f) == 150000);
    fclose(f);
    free(buffered);
    puts("ok");
    return 0;
}
