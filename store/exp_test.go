//go:build exp

package store

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestExp(t *testing.T) {
	root := os.Getenv("ROOT")
	type f struct {
		p string
		n int64
	}
	var files []f
	filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			st, _ := d.Info()
			files = append(files, f{p, st.Size()})
		}
		return nil
	})
	for _, bs := range []int{256 << 10} {
		d := openDir(t)
		s := openStore(t, d, Options{BlockSize: bs})
		st := time.Now()
		w := openWriter(t, s)
		ch := make(chan []f, 8)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for l := range ch {
					for _, x := range l {
						g, err := os.Open(x.p)
						if err != nil {
							panic(err)
						}
						_, _, err = w.PutFile(g, x.n)
						g.Close()
						if err != nil {
							panic(err)
						}
					}
				}
			})
		}
		for i := 0; i < len(files); i += 200 {
			ch <- files[i:min(i+200, len(files))]
		}
		close(ch)
		wg.Wait()
		put := time.Since(st)
		var ms runtime.MemStats
		runtime.ReadMemStats(&ms)
		fmt.Println("heap", ms.HeapAlloc>>20, "sys", ms.HeapSys>>20, "idle", ms.HeapIdle>>20, "gc", ms.NumGC, "mallocs", ms.Mallocs, "total", ms.TotalAlloc>>20)
		runtime.GC()
		pf, _ := os.Create("/tmp/store-exp/heap.prof")
		pprof.WriteHeapProfile(pf)
		pf.Close()
		require.NoError(t, w.Flush())
		fl := time.Since(st) - put
		w.Close()
		stt, _ := s.Stats()
		du := int64(0)
		filepath.WalkDir(d.Path(), func(p string, d fs.DirEntry, err error) error {
			if st, err := d.Info(); err == nil && d.Type().IsRegular() {
				du += st.Size()
			}
			return nil
		})
		b, _ := os.ReadFile("/proc/self/status")
		i := strings.Index(string(b), "VmHWM")
		fmt.Println(bs>>10, len(files), put, fl, stt, du, string(b[i:i+24]))
		st = time.Now()
		s2 := openStore(t, d, Options{})
		fmt.Println("open", time.Since(st))
		s2.Close()
		s.Close()
	}
}
