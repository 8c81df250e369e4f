# SPDX-License-Identifier: BSD-2-Clause
"""node: V8's reservations, garbage collection, buffers, worker threads, child processes, wasm."""
import harness

SCRIPT = r'''
const { Worker, isMainThread } = require('worker_threads'), cp = require('child_process');
const crypto = require('crypto'), zlib = require('zlib');
const md5 = (x) => crypto.createHash('md5').update(x).digest('hex');
const objects = []; for (let i = 0; i < 150000; i++) objects.push({ i, s: 'v' + i, l: [i, i + 1] });
console.log(md5(JSON.stringify(objects.filter((o) => o.i % 7 === 0))));
let buffers = []; for (let r = 0; r < 5; r++) { buffers = []; for (let i = 0; i < 60; i++) buffers.push(Buffer.alloc(200000 + i * 1000, i)); }
console.log(md5(Buffer.concat(buffers))); const packed = zlib.gzipSync(Buffer.concat(buffers)); console.log(zlib.gunzipSync(packed).length);
const m = new Map(); for (let i = 0; i < 100000; i++) m.set('k' + (i % 30000), i); console.log(m.size, m.get('k29999'));
const wasm = new WebAssembly.Memory({ initial: 10, maximum: 1000 }); wasm.grow(200); new Uint8Array(wasm.buffer).fill(9);
console.log(wasm.buffer.byteLength, new Uint8Array(wasm.buffer)[9999999]);
console.log(cp.execSync('echo child | tr a-z A-Z').toString().trim(), cp.spawnSync(process.execPath, ['-e', 'process.exit(4)']).status);
const code = `const { parentPort, workerData } = require('worker_threads'); let a = []; for (let i = 0; i < 40000; i++) a.push('w' + i * workerData);
parentPort.postMessage([workerData, a.length, a[39999]]);`;
const done = []; for (let w = 1; w <= 3; w++) new Worker(code, { eval: true, workerData: w }).on('message', (x) => { done.push(x);
  if (done.length === 3) { console.log(JSON.stringify(done.sort((a, b) => a[0] - b[0]))); crypto.pbkdf2('p', 's', 2000, 32, 'sha256', (e, k) => {
    console.log(k.toString('hex')); process.exitCode = 3; }); } });
'''


def run(ctx):
    harness.need('node')
    ctx.run([harness.which('node'), '-e', SCRIPT], timeout=240)
