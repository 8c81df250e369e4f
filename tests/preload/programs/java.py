# SPDX-License-Identifier: BSD-2-Clause
"""javac, and java with three collectors: reservations that are committed piece by piece, many threads."""
import hashlib
import os

import harness

SOURCE = r'''
import java.nio.ByteBuffer;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
public class Job {
    static long tree(int depth, Object[] at) {
        if (depth == 0) return 1;
        long n = 1;
        for (int i = 0; i < at.length; i++) { at[i] = new Object[at.length]; n += tree(depth - 1, (Object[]) at[i]); }
        return n;
    }
    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(6);
        List<Future<Long>> jobs = new ArrayList<>();
        for (int t = 0; t < 6; t++) { final int d = t; jobs.add(pool.submit(() -> { long s = 0; for (int r = 0; r < 4; r++) s += tree(5, new Object[5 + d % 3]); return s; })); }
        long sum = 0; for (Future<Long> f : jobs) sum += f.get();
        pool.shutdown();
        System.out.println("trees " + sum);
        ByteBuffer[] direct = new ByteBuffer[40];
        for (int i = 0; i < direct.length; i++) { direct[i] = ByteBuffer.allocateDirect(100000 * (i % 7 + 1)); for (int k = 0; k < direct[i].capacity(); k += 512) direct[i].put(k, (byte) (i + k)); }
        long d = 0; for (ByteBuffer b : direct) for (int k = 0; k < b.capacity(); k += 512) d += b.get(k);
        System.out.println("direct " + d);
        Map<String, Integer> m = IntStream.range(0, 150000).boxed().collect(Collectors.toMap(i -> "k" + i, i -> i));
        System.out.println("map " + m.size() + " " + m.values().stream().mapToLong(i -> i).sum());
        byte[][] big = new byte[30][]; for (int r = 0; r < 60; r++) big[r % 30] = new byte[1 << 20];
        try { List<long[]> l = new ArrayList<>(); while (true) l.add(new long[1 << 20]); } catch (OutOfMemoryError e) { System.out.println("OutOfMemoryError"); }
        Thread[] ts = new Thread[100]; int[] c = new int[1]; for (int i = 0; i < 100; i++) { ts[i] = new Thread(() -> { synchronized (c) { c[0]++; } }); ts[i].start(); } for (Thread t : ts) t.join();
        Process p = new ProcessBuilder("sh", "-c", "echo child; exit 5").redirectErrorStream(true).start();
        System.out.println(new String(p.getInputStream().readAllBytes()).trim() + " " + p.waitFor() + " " + c[0]);
        try { recurse(0); } catch (StackOverflowError e) { System.out.println("StackOverflowError"); }
        Object n = null; try { n.hashCode(); } catch (NullPointerException e) { System.out.println("NullPointerException"); }
        System.exit(3);
    }
    static int recurse(int n) { return recurse(n + 1) + 1; }
}
'''


def run(ctx):
    harness.need('javac', 'java')
    with open(ctx.path('Job.java'), 'w', encoding='ascii') as f:
        f.write(SOURCE)
    ctx.run(['javac', '-J-Xmx200m', '-J-XX:TieredStopAtLevel=1', 'Job.java'], timeout=300)
    classes = sorted(n for n in os.listdir(ctx.dir) if n.endswith('.class'))
    for n in classes:
        with open(ctx.path(n), 'rb') as f:
            ctx.record(n, hashlib.sha256(f.read()).hexdigest())
    for gc in ('-XX:+UseG1GC', '-XX:+UseZGC'):
        ctx.run(['java', '-Xmx160m', gc, '-Xshare:auto', '-XX:TieredStopAtLevel=1', '-cp', ctx.dir, 'Job'], timeout=300, label='java' + gc)
