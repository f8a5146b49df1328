//go:build linux || darwin

package runner

import (
	"io"
	"os"
	"os/exec"
	"testing"
)

// BenchmarkRun is what an attempt costs beyond os/exec.
func BenchmarkRun(b *testing.B) {
	b.Run("true", func(b *testing.B) {
		for b.Loop() {
			if _, err := Run(b.Context(), Command{Args: []string{"true"}, Env: os.Environ()}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("true/os-exec", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("output=64MiB", func(b *testing.B) {
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			b.Fatal(err)
		}
		defer null.Close()
		b.SetBytes(64 << 20)
		for b.Loop() {
			c := Command{Args: []string{"head", "-c", "67108864", "/dev/zero"}, Env: os.Environ(), Stdout: null, Log: io.Discard}
			if _, err := Run(b.Context(), c); err != nil {
				b.Fatal(err)
			}
		}
	})
}
