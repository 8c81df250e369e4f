// SPDX-License-Identifier: BSD-2-Clause
// Goroutines over GOMAXPROCS threads, with channels and a wait group.
package main

import (
	"fmt"
	"runtime"
	"sync"
)

func work(n uint64) uint64 {
	h := n
	for i := 0; i < 20000; i++ {
		h = h*6364136223846793005 + 1442695040888963407
	}
	return h
}

func main() {
	if runtime.NumCPU() < 1 {
		panic("no CPU")
	}
	in, out := make(chan uint64), make(chan uint64)
	var all sync.WaitGroup
	for i := 0; i < 12; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for n := range in {
				out <- work(n)
			}
		}()
	}
	go func() {
		for i := uint64(0); i < 500; i++ {
			in <- i
		}
		close(in)
		all.Wait()
		close(out)
	}()
	var sum uint64
	for v := range out {
		sum += v
	}
	kept := make([][]byte, 40)
	for i := 0; i < 400; i++ {
		kept[i%40] = make([]byte, 1<<18)
		kept[i%40][0] = 1
	}
	fmt.Println("go", sum)
}
