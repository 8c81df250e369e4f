# SPDX-License-Identifier: BSD-2-Clause
"""Go programs: a dynamic one (cgo: malloc from C, callbacks) and a static one, where a preload must do nothing."""
import os
import subprocess

import harness

PURE = r'''
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sort"
	"sync"
)

func main() {
	var wg sync.WaitGroup
	sums := make([]string, 16)
	for g := range sums {
		wg.Add(1)
		go func(g int) {
			defer wg.Done()
			m := map[string][]int{}
			for i := 0; i < 20000; i++ {
				k := fmt.Sprint("k", (i*7919+g)%997)
				m[k] = append(m[k], i)
			}
			b, _ := json.Marshal(m)
			sums[g] = fmt.Sprintf("%x", sha256.Sum256(b))[:12]
		}(g)
	}
	wg.Wait()
	sort.Strings(sums)
	fmt.Println(sums)
	var blocks [][]byte
	for i := 0; i < 40; i++ {
		blocks = append(blocks, bytes.Repeat([]byte{byte(i)}, 1<<20+i))
		if i%10 == 9 {
			runtime.GC()
			blocks = blocks[5:]
		}
	}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	for _, b := range blocks {
		w.Write(b)
	}
	w.Close()
	r, _ := gzip.NewReader(&z)
	n, _ := io.Copy(io.Discard, r)
	fmt.Println(len(blocks), n)
	out, err := exec.Command("sh", "-c", "echo from sh; exit 3").Output()
	fmt.Print(string(out), err, "\n")
	defer func() { fmt.Println("recovered", recover() != nil); os.Exit(4) }()
	var p *int
	fmt.Println(*p)
}
'''
CGO = r'''
package main

/*
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static void *worker(void *arg) { char **slot = arg; for (int i = 0; i < 20000; i++) { free(*slot); *slot = malloc(i % 3000 + 1); memset(*slot, i, i % 3000 + 1); } return arg; }
static int c_threads(void) { pthread_t t[4]; char *s[4] = {0}; int sum = 0; for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, worker, &s[i]);
  for (int i = 0; i < 4; i++) { pthread_join(t[i], 0); sum += s[i][0] & 255; free(s[i]); } return sum; }
// As Go's own resolver does, without compiling package net, a third of the whole.
static int lookup(void) { struct addrinfo *a; int err = getaddrinfo("localhost", 0, 0, &a); if (!err) freeaddrinfo(a); return err; }
*/
import "C"

import (
	"fmt"
	"os/user"
	"sync"
	"unsafe"
)

func main() {
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for g := 0; g < 8; g++ {
		wg.Add(1)
		go func(g int) {
			defer wg.Done()
			n := 0
			for i := 0; i < 3000; i++ {
				p := C.malloc(C.size_t(i%5000 + 1))
				C.memset(p, C.int(g), C.size_t(i%5000+1))
				b := C.GoBytes(p, C.int(i%5000+1))
				n += int(b[len(b)-1]) + len(b)
				s := C.CString("text")
				n += len(C.GoString(s))
				C.free(unsafe.Pointer(s))
				C.free(p)
			}
			mu.Lock()
			total += n
			mu.Unlock()
		}(g)
	}
	wg.Wait()
	fmt.Println(total, C.c_threads())
	fmt.Println(C.lookup())
	u, err := user.Current()
	fmt.Println(u.Uid, err)
}
'''


def build(cache, name, text, cgo):
    env = dict(os.environ, CGO_ENABLED='1' if cgo else '0', GOCACHE=os.path.join(cache, 'go'), GOFLAGS='', GO111MODULE='off',
               GOPROXY='off', GOTOOLCHAIN='local', HOME=os.environ.get('HOME', cache))
    env.pop('LD_PRELOAD', None)
    return harness.built(cache, (name, text), lambda src, out: [harness.which('go'), 'build', '-o', out, src], env=env)


def prepare(cache):
    harness.need('go', 'gcc')
    build(cache, 'pure.go', PURE, False)
    build(cache, 'cgo.go', CGO, True)


def run(ctx):
    dynamic = build(ctx.cache, 'cgo.go', CGO, True)
    head = subprocess.run([harness.which('readelf'), '-l', dynamic], stdout=subprocess.PIPE, check=False).stdout
    ctx.check(b'INTERP' in head, 'the cgo program is not dynamic: the preload would not be tested')
    ctx.run([dynamic], label='cgo')
    ctx.run([build(ctx.cache, 'pure.go', PURE, False)], label='static')
