// SPDX-License-Identifier: BSD-2-Clause
// node: libuv's pool (crypto, files), and worker threads.
'use strict';
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto');

function work(n) {
  let h = n >>> 0;
  for (let i = 0; i < 200000; i++) h = (Math.imul(h, 1664525) + 1013904223) >>> 0;
  return h;
}

if (!isMainThread) {
  parentPort.postMessage(work(workerData));
} else {
  const jobs = [];
  for (let i = 0; i < 6; i++)
    jobs.push(new Promise((done, failed) => {
      const w = new Worker(__filename, { workerData: i });
      w.on('message', done);
      w.on('error', failed);
    }));
  for (let i = 0; i < 12; i++)
    jobs.push(new Promise((done, failed) => crypto.pbkdf2('p' + i, 's', 2000, 16, 'sha256',
      (e, key) => e ? failed(e) : done(key.toString('hex')))));
  Promise.all(jobs).then((r) => console.log('node', r.join(' ')));
}
