//go:build linux || darwin

package runner

import (
	"os"
	"syscall"

	"decree/runner/fence"
	"decree/runner/gate"
)

// TryNoNet has a process make a network namespace and execute nothing in it. An error says
// which step the system refused.
func TryNoNet() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	p, err := gate.Start(gate.Command{
		Args: []string{"none"}, Fence: fence.Fence{NoNet: true},
		Attr: syscall.ProcAttr{Dir: "/", Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}},
	})
	if err != nil {
		return err
	}
	return p.Ready()
}
