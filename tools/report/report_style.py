# SPDX-License-Identifier: BSD-2-Clause
"""Style sheet and script of the page of hybridctl report."""

STYLE = '''
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1c1f24;--soft:#5b6470;
--line:#dfe3e8;
--dram:#3778d2;--pm:#d9761c;--third:#2a9d6f;--fourth:#8a63c9;--faint:#c4cad2;--warn:#b3261e}
@media(prefers-color-scheme:dark){:root{--page:#15171b;--card:#1e2127;--ink:#e7e9ec;--soft:#a1aab5;
--line:#343942;
--dram:#5a9cf0;--pm:#f0963c;--third:#45c08f;--fourth:#b093ea;--faint:#565d68;--warn:#ff8a80}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.45 system-ui,sans-serif}
main{max-width:1160px;margin:0 auto;padding:16px}
h1{font-size:1.5em;margin:.2em 0;overflow-wrap:anywhere}h2{font-size:1.3em;margin:1.6em 0 .2em;
overflow-wrap:anywhere}
h3{font-size:1.05em;margin:1.4em 0 .5em}
p{margin:.3em 0;max-width:75ch}.note,.sub{color:var(--soft);overflow-wrap:anywhere}
.note{font-weight:normal;font-size:.9em}
a{color:var(--dram)}nav a{margin-right:1em}
.tiles{display:grid;grid-template-columns:repeat(4,minmax(0,1fr));gap:10px;margin:12px 0}
@media(max-width:800px){.tiles{grid-template-columns:repeat(2,minmax(0,1fr))}}
.tile,.chart,.box{background:var(--card);border:1px solid var(--line);border-radius:8px}
.tile{padding:9px 12px}.tile b{display:block;font-size:1.3em;font-weight:600;overflow-wrap:anywhere}
.tile span{color:var(--soft);font-size:.85em}
.grid{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:12px}
@media(max-width:800px){.grid{grid-template-columns:minmax(0,1fr)}}
.chart{margin:0;padding:11px 14px;min-width:0;position:relative}.box{padding:4px 14px 10px}
figcaption{margin-bottom:4px}
.legend{display:flex;flex-wrap:wrap;gap:2px 14px;font-size:.85em;color:var(--soft);
margin-bottom:6px}
.legend i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}
.key{background:var(--l)}
@media(prefers-color-scheme:dark){.key{background:var(--d)}}
.chart.low,.grid .box{grid-column:1/-1}
.frame{margin-top:12px;display:grid;grid-template-columns:5.6em minmax(0,1fr);column-gap:7px}
.ys{position:relative;font-size:.78em;color:var(--soft)}
.ys span{position:absolute;right:0;transform:translateY(50%);white-space:nowrap}
.plot{height:190px;position:relative;border-bottom:1px solid var(--faint)}.low .plot{height:34px}
.plot svg,.plot img{width:100%;height:100%;display:block}
.map{image-rendering:pixelated}
.xs{position:relative;height:1.4em;font-size:.78em;color:var(--soft)}
.x{position:absolute;top:3px;transform:translateX(-50%);white-space:nowrap}
.x.first{transform:none}.x.last{transform:translateX(-100%)}
svg line.grid{stroke:var(--line);stroke-width:1;vector-effect:non-scaling-stroke}
.line{fill:none;stroke-width:1.8;vector-effect:non-scaling-stroke;stroke-linejoin:round}
.line.dram{stroke:var(--dram)}.line.pm{stroke:var(--pm)}.line.third{stroke:var(--third)}
.line.fourth{stroke:var(--fourth)}
.line.faint{stroke:var(--soft);stroke-dasharray:5 4}
.bar.dram,.area.dram{fill:var(--dram)}.bar.pm,.area.pm{fill:var(--pm)}
.area.dram-cold{fill:var(--dram);opacity:.35}.area.pm-cold{fill:var(--pm);opacity:.35}
.c-unknown{fill:var(--faint);background:var(--faint)}.c-cpu{fill:var(--third);
background:var(--third)}
.c-bandwidth{fill:var(--dram);background:var(--dram)}.c-latency{fill:var(--fourth);
background:var(--fourth)}
i.dram{background:var(--dram)}i.pm{background:var(--pm)}i.third{background:var(--third)}
i.fourth{background:var(--fourth)}
i.faint{background:var(--soft)}i.dram-cold{background:var(--dram);opacity:.35}
i.pm-cold{background:var(--pm);opacity:.35}
.hbar{display:grid;grid-template-columns:11em minmax(0,1fr) 6em;gap:10px;align-items:center;
margin:5px 0}
@media(max-width:500px){.hbar{grid-template-columns:7em minmax(0,1fr) 5em}}
.track{height:16px}.track i{display:block;height:100%;border-radius:3px;min-width:2px}
details{margin-top:6px;font-size:.9em}summary{cursor:pointer;color:var(--soft)}
.scroll{overflow-x:auto;max-height:300px;overflow-y:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:2px 12px 2px 0;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}
th{font-weight:600}td{overflow-wrap:anywhere}
.warn li{color:var(--warn);overflow-wrap:anywhere}
.at{position:absolute;top:0;bottom:0;width:1px;background:var(--soft);pointer-events:none}
.tip{position:absolute;right:10px;top:8px;background:var(--card);border:1px solid var(--line);
border-radius:5px;
padding:3px 8px;font-size:.8em;pointer-events:none;z-index:2;white-space:pre}
'''

# Pointing at a drawing shows the nearest row of its table. Without scripts the tables tell all.
SCRIPT = '''
for (const f of document.querySelectorAll('.chart[data-begin]')) {
  const plot = f.querySelector('.plot'), rows = [...f.querySelectorAll('tr[data-x]')];
  const head = [...f.querySelectorAll('th')].map(h => h.textContent);
  if (!plot || !rows.length) continue;
  const at = document.createElement('div'), tip = document.createElement('div');
  at.className = 'at'; tip.className = 'tip';
  plot.addEventListener('mousemove', m => {
    const b = plot.getBoundingClientRect();
    const s = Math.min(1, Math.max(0, (m.clientX - b.left) / b.width));
    const x = +f.dataset.begin + s * (f.dataset.end - f.dataset.begin);
    let best = rows[0];
    for (const r of rows) if (Math.abs(r.dataset.x - x) < Math.abs(best.dataset.x - x)) best = r;
    tip.textContent = [...best.cells].map((c, i) => head[i] + ': ' + c.textContent).join('\\n');
    at.style.left = 100 * s + '%';
    plot.append(at); f.append(tip);
  });
  plot.addEventListener('mouseleave', () => { at.remove(); tip.remove(); });
}
'''
