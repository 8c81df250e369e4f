# SPDX-License-Identifier: BSD-2-Clause
"""chromium as nobody, with its sandbox: renderers under filters that kill; scripts, canvases and a worker in a page."""
import harness

PAGE = '''<html><body><p id="out">not run</p><canvas id="c" width="800" height="600"></canvas><script>
let h = 0; const a = []; for (let i = 0; i < 300000; i++) { a.push({i, s: "x".repeat(i % 50)}); h = (h * 31 + a[i].s.length) >>> 0; }
const c = document.getElementById("c").getContext("2d"); for (let i = 0; i < 500; i++) c.fillRect(i, i % 60, 5, 5);
const pixels = c.getImageData(0, 0, 800, 600).data.reduce((s, v) => s + v, 0);
const big = new Float64Array(4 << 20).fill(1.5); let sum = 0; for (const v of big) sum += v;
for (let i = 0; i < 3000; i++) { const d = document.createElement("div"); d.textContent = "row " + i; document.body.appendChild(d); }
document.getElementById("out").textContent = [h, pixels, sum, document.body.children.length].join(" ");
while (document.body.children.length > 1) document.body.removeChild(document.body.lastChild);
</script></body></html>'''


def run(ctx):
    harness.need('chromium')
    user = harness.as_nobody(ctx)
    with open(ctx.path('page.html'), 'w', encoding='ascii') as f:
        f.write(PAGE)
    got = ctx.run(['chromium', '--headless', '--disable-gpu', '--disable-dev-shm-usage', '--user-data-dir=' + ctx.path('profile'),
                   '--dump-dom', 'file://' + ctx.path('page.html')], record=None, timeout=120, **user)
    ctx.record('chromium status', got.status)
    ctx.record('chromium page', got.out)
    ctx.check(b'3000' in got.out or b'3002' in got.out or b'3003' in got.out, 'the page was not run')
