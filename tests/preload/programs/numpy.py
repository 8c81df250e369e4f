# SPDX-License-Identifier: BSD-2-Clause
"""numpy: large arrays and their views, sorting, linear algebra with threads, files in memory."""
import harness

SCRIPT = r'''
import hashlib, io, threading
import numpy as np
def told(a): return hashlib.md5(np.ascontiguousarray(a).tobytes()).hexdigest()
r = np.random.RandomState(7)
a = r.randint(0, 1 << 30, 3000000)
print(told(np.sort(a)), told(np.unique(a % 1000)), told(a[::7].reshape(-1, 3)[:, 1]))
m = r.randint(0, 9, (300, 300)).astype(float)
print(told((m @ m).astype(np.int64)), int(np.linalg.matrix_rank(m)), told(np.cumsum(a)[::1000]))
parts = [None] * 4
def work(k): parts[k] = sum(int((a + i * k).sum() & 0xffff) for i in range(15))
pool = [threading.Thread(target=work, args=(k,)) for k in range(4)]
[t.start() for t in pool]; [t.join() for t in pool]; print(parts)
f = io.BytesIO(); np.savez_compressed(f, a=a[:200000], m=m); f.seek(0); z = np.load(f)
print(bool((z['a'] == a[:200000]).all()), told(z['m']))
grown = np.empty(0, dtype=np.int32)
for i in range(200): grown = np.append(grown, np.arange(i * 37, dtype=np.int32))
print(grown.size, told(grown)); grown.resize(10, refcheck=False); print(grown.tolist())
'''


def run(ctx):
    harness.need('/usr/bin/python3')
    if ctx.run(['/usr/bin/python3', '-c', 'import numpy'], record=None).status != 0:
        raise harness.Skip('not installed: numpy')
    ctx.run(['/usr/bin/python3', '-c', SCRIPT])
