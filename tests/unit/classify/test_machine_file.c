/* SPDX-License-Identifier: BSD-2-Clause
 * Which figures hold on a machine: files of calibrate in fake folders, HMAT and kinds of
 * PM from fake sysfs trees. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "classify/figures.h"
#include "fake_tree.h"

#define GIB_IN_KIB (1024 * 1024ul)

static char top[64], sys_root[96], etc[96], own[160];
static char told[2048];
static struct topology topo;
static struct figures_query place;
static struct figures_found found;

static void hear(void *ctx, const char *message)
{
    (void)ctx;
    snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s\n", message);
}

static void put_node(int id, const char *cpus, unsigned long kib, const unsigned hmat[4])
{
    static const char *const names[] = {"read_latency", "write_latency", "read_bandwidth",
                                        "write_bandwidth"};
    char name[128], text[128];

    snprintf(name, sizeof(name), "devices/system/node/node%d/meminfo", id);
    snprintf(text, sizeof(text), "Node %d MemTotal: %lu kB\nNode %d MemFree: 5 kB\n", id, kib, id);
    tree_put(sys_root, name, text);
    snprintf(name, sizeof(name), "devices/system/node/node%d/cpulist", id);
    tree_put(sys_root, name, cpus);
    for (int i = 0; hmat && i < 4; i++) {
        snprintf(name, sizeof(name), "devices/system/node/node%d/access0/initiators/%s", id,
                 names[i]);
        snprintf(text, sizeof(text), "%u\n", hmat[i]);
        if (hmat[i])
            tree_put(sys_root, name, text);
    }
}

static int setup(void **state)
{
    (void)state;
    snprintf(top, sizeof(top), "%s", "/tmp/hybrid-figures-XXXXXX");
    if (!mkdtemp(top))
        return -1;
    snprintf(sys_root, sizeof(sys_root), "%s/sys", top);
    snprintf(etc, sizeof(etc), "%s/etc", top);
    snprintf(own, sizeof(own), "%s/config", top);
    setenv("XDG_CONFIG_HOME", own, 1);
    tree_put(sys_root, "devices/system/node/online", "0-1\n");
    tree_put(sys_root, "devices/system/cpu/modalias",
             "cpu:type:x86,ven0000fam0006mod006A:feature:,0000,0001\n");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return tree_remove(top);
}

/* A machine whose node 1 is PM. */
static void look(void)
{
    const struct hy_pm_spec node1 = {.kind = HY_PM_NODE, .nodes = 2};

    assert_int_equal(topology_read(sys_root, &topo), 0);
    figures_query(&node1, &topo, &place);
    place.sys = sys_root;
    place.etc = etc;
}

static const char *ask(const char *machine)
{
    told[0] = '\0';
    memset(&found, 0x5a, sizeof(found));
    figures_find(machine, &place, &found, hear, NULL);
    return found.said;
}

static void two_nodes(void)
{
    put_node(0, "0-7\n", 64 * GIB_IN_KIB, NULL);
    put_node(1, "\n", 128 * GIB_IN_KIB, NULL);
    look();
}

/* --- without a file -------------------------------------------------------------- */

static void test_technology_by_what_pm_is(void **state)
{
    (void)state;
    two_nodes();
    assert_string_equal(ask("auto"), "defaults of cxl");
    put_node(1, "8-15\n", 128 * GIB_IN_KIB, NULL);
    look();
    assert_string_equal(ask("auto"), "defaults of remote-numa");
    assert_true(found.figures.medium[HY_PM].read_ns == 151.2);
    put_node(1, "\n", 128 * GIB_IN_KIB, NULL);
    tree_put(sys_root, "bus/dax/drivers/kmem/dax1.0/x", "");
    tree_put(sys_root, "bus/dax/devices/dax1.0/target_node", "1\n");
    look();
    assert_string_equal(ask("auto"), "defaults of cxl");
    tree_put(sys_root, "bus/cxl/devices/dax_region1/x", "");
    look();
    assert_false(topo.node[1].is_nvdimm);
    assert_string_equal(ask("auto"), "defaults of cxl");
    tree_put(sys_root, "bus/nd/devices/dax1.0/x", "");
    look();
    assert_true(topo.node[1].is_nvdimm);
    assert_string_equal(ask("auto"), "defaults of optane");
    place.backend = HY_PM_FILE;
    assert_string_equal(ask("auto"), "defaults of optane");
    assert_string_equal(ask("pram"), "defaults of pram");
    assert_string_equal(told, "");
}

static void test_hmat(void **state)
{
    static const unsigned dram[] = {80, 90, 100000, 90000}, pm[] = {300, 0, 10240, 0};
    static const unsigned half[] = {300, 300, 0, 0};

    (void)state;
    put_node(0, "0-7\n", 64 * GIB_IN_KIB, dram);
    put_node(1, "\n", 128 * GIB_IN_KIB, pm);
    look();
    assert_string_equal(ask("auto"), "HMAT, what it lacks as cxl");
    const struct medium_figures *m = found.figures.medium;
    assert_int_equal(found.figures.source, FIGURES_HMAT);
    assert_true(m[HY_DRAM].read_ns == 80 && m[HY_DRAM].write_ns == 90);
    assert_true(m[HY_DRAM].seq_read_mbs == 100000 && m[HY_DRAM].seq_write_mbs == 90000);
    /* What the firmware does not tell of writes is as of reads. */
    assert_true(m[HY_PM].read_ns == 300 && m[HY_PM].write_ns == 300);
    assert_true(m[HY_PM].seq_write_mbs == 10240 && m[HY_PM].random_read_mbs == 10240);
    assert_true(m[HY_PM].read_knee == 6);                     /* of cxl */
    assert_string_equal(ask("optane"), "defaults of optane"); /* as asked */
    teardown(state);
    setup(state);
    put_node(0, "0-7\n", 64 * GIB_IN_KIB, dram);
    put_node(1, "\n", 128 * GIB_IN_KIB, half); /* without bandwidth it is no machine */
    look();
    assert_string_equal(ask("auto"), "defaults of cxl");
}

/* --- files ----------------------------------------------------------------------- */

#define MEDIA                                                                                      \
    "[dram]\nread-ns=81\nwrite-ns=80\nseq-read-mbs=48000\nseq-write-mbs=40000\n"                   \
    "[pm]\nread-ns=240\nwrite-ns=640\nseq-read-mbs=12000\nseq-write-mbs=4000\n"                    \
    "[curve pm seq-read]\n1 = 4000\n2 = 8000.5\n"
#define HEAD "[machine]\nversion=1\nmeasured=2026-11-21\n"
#define HERE "cpu=x86,ven0000fam0006mod006A\npm=node\ndram-mib=65000\npm-mib=131072\n"

static void expect_told(const char *what)
{
    if (!strstr(told, what))
        fail_msg("\"%s\" is not in: %s", what, told);
}

static void test_own_file_comes_first(void **state)
{
    char said[256];

    (void)state;
    two_nodes();
    tree_put(etc, FIGURES_FILE, HEAD HERE MEDIA);
    snprintf(said, sizeof(said), "measured 2026-11-21 (%s/%s)", etc, FIGURES_FILE);
    assert_string_equal(ask("auto"), said);
    assert_true(found.figures.medium[HY_DRAM].read_ns == 81);
    tree_put(own, FIGURES_FILE, HEAD HERE MEDIA);
    snprintf(said, sizeof(said), "measured 2026-11-21 (%s/%s)", own, FIGURES_FILE);
    assert_string_equal(ask("auto"), said);
    assert_string_equal(ask("cxl"), "defaults of cxl");
    assert_string_equal(told, "");
    /* HOME where there is no XDG_CONFIG_HOME, and nothing where neither is a path. */
    char path[HY_PATH_MAX];
    unsetenv("XDG_CONFIG_HOME");
    setenv("HOME", "/h", 1);
    assert_int_equal(figures_own_path(path, sizeof(path)), 0);
    assert_string_equal(path, "/h/.config/libhybrid/machine.ini");
    setenv("HOME", "h", 1);
    assert_int_equal(figures_own_path(path, sizeof(path)), -ENOENT);
    ask("auto");
    assert_non_null(strstr(found.said, etc));
}

/* Nobody else's word is taken. */
static void test_files_of_others_are_refused(void **state)
{
    char path[320];

    (void)state;
    two_nodes();
    tree_put(own, FIGURES_FILE, HEAD HERE MEDIA);
    snprintf(path, sizeof(path), "%s/%s", own, FIGURES_FILE);
    for (unsigned mode = 0620; mode; mode = mode == 0620 ? 0602 : 0) {
        assert_int_equal(chmod(path, mode), 0);
        assert_string_equal(ask("auto"), "defaults of cxl");
        expect_told("others may write to it");
    }
    assert_int_equal(chmod(path, 0600), 0);
    ask("auto");
    assert_int_equal(found.figures.source, FIGURES_MEASURED);
    if (geteuid() == 0) { /* only root can give files away */
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_string_equal(ask("auto"), "defaults of cxl");
        expect_told("belongs to another user");
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_string_equal(ask("auto"), "defaults of cxl");
    expect_told("cannot be read (EISDIR)");
}

static void test_files_of_other_machines(void **state)
{
    static const struct {
        const char *text, *message;
    } other[] = {
        {"cpu=x86,ven0002fam0019mod0001\n", "its processor is x86,ven0002fam0019mod0001"},
        {"dram-mib=32768\n", "its DRAM has 32768 MiB, here it is 65536"},
        {"pm-mib=262144\n", "its PM has 262144 MiB, here it is 131072"},
        {"pm=file\n", "its PM is \"file\", here it is \"node\""},
    };
    char text[2048];

    (void)state;
    two_nodes();
    for (size_t i = 0; i < HY_ARRAY_SIZE(other); i++) {
        snprintf(text, sizeof(text), "%s%s%s", HEAD, other[i].text, MEDIA);
        tree_put(own, FIGURES_FILE, text);
        assert_string_equal(ask("auto"), "defaults of cxl");
        expect_told("was measured on another machine");
        expect_told(other[i].message);
        /* Named, it is used: the user knows better. */
        char path[320];
        snprintf(path, sizeof(path), "%s/%s", own, FIGURES_FILE);
        ask(path);
        assert_int_equal(found.figures.source, FIGURES_MEASURED);
        expect_told("used all the same");
    }
    /* What a file does not say fits; a tenth more or less, too. */
    tree_put(own, FIGURES_FILE, HEAD "dram-mib=60000\n" MEDIA);
    ask("auto");
    assert_int_equal(found.figures.source, FIGURES_MEASURED);
    assert_string_equal(told, "");
    /* Trying out an emulated PM on a machine that was measured is nothing to be told of. */
    tree_put(own, FIGURES_FILE, HEAD HERE MEDIA);
    place.backend = HY_PM_EMULATED;
    assert_string_equal(ask("auto"), "defaults of optane");
    assert_string_equal(told, "");
}

static void test_broken_files(void **state)
{
    (void)state;
    two_nodes();
    tree_put(own, FIGURES_FILE, HEAD "[dram]\nread-ns=fast\n");
    tree_put(etc, FIGURES_FILE, HEAD HERE MEDIA);
    ask("auto");
    expect_told("line 5: read-ns = \"fast\" is not a number");
    expect_told("is not used");
    assert_non_null(strstr(found.said, etc)); /* the next one serves */
    assert_string_equal(ask("/nowhere/m.ini"), "defaults of cxl");
    expect_told("HYBRID_MACHINE=/nowhere/m.ini cannot be read (ENOENT)");
}

static void test_identity(void **state)
{
    struct figures_identity id;

    (void)state;
    two_nodes();
    figures_identify(&place, &id);
    assert_string_equal(id.cpu, "x86,ven0000fam0006mod006A");
    assert_string_equal(id.pm, "node");
    assert_true(id.dram_mib == 65536 && id.pm_mib == 131072);
    tree_put(sys_root, "devices/system/cpu/cpu0/regs/identification/midr_el1",
             "0x00000000410fd0c1\n");
    figures_identify(&place, &id);
    assert_string_equal(id.cpu, "arm,0x00000000410fd0c1");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_technology_by_what_pm_is),
        T(test_hmat),
        T(test_own_file_comes_first),
        T(test_files_of_others_are_refused),
        T(test_files_of_other_machines),
        T(test_broken_files),
        T(test_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
