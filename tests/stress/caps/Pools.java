// SPDX-License-Identifier: BSD-2-Clause
// Thread pools of Java: sized by availableProcessors, a common pool, and one larger than that.
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.LongStream;

public class Pools {
    static long work(long n) {
        long h = n;
        for (int i = 0; i < 20000; i++)
            h = h * 6364136223846793005L + 1442695040888963407L;
        return h;
    }

    static long pool(int threads) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        List<Future<Long>> parts = new ArrayList<>();
        for (long i = 0; i < 200; i++) {
            final long n = i;
            parts.add(pool.submit(() -> work(n)));
        }
        long sum = 0;
        for (Future<Long> p : parts)
            sum += p.get();
        pool.shutdown();
        return sum;
    }

    public static void main(String[] args) throws Exception {
        CyclicBarrier barrier = new CyclicBarrier(6);
        Thread[] threads = new Thread[6];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                try {
                    for (int r = 0; r < 50; r++)
                        barrier.await();
                } catch (Exception e) {
                    System.exit(3);
                }
            });
            threads[i].start();
        }
        for (Thread t : threads)
            t.join();
        long sum = pool(Runtime.getRuntime().availableProcessors()) + pool(9)
            + LongStream.range(0, 2000).parallel().map(Pools::work).sum();
        byte[][] kept = new byte[40][];
        for (int i = 0; i < 400; i++)
            kept[i % kept.length] = new byte[1 << 18];
        System.out.println("java " + sum);
    }
}
