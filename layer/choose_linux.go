package layer

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"decree/disk"
	"decree/layer/overlay"
	"decree/runner/gate"
	"decree/runner/userns"
)

// unfit refuses what would be mounted and then serve nobody.
func (p *Place) unfit() error {
	root, err := p.Root.Self()
	if err != nil {
		return err
	}
	if int(root.UID) != os.Geteuid() || os.Geteuid() != 0 && int(root.GID) != os.Getegid() {
		return &Refusal{Mechanism: Overlay, Reason: "the root belongs to another user or group, and nobody could write in its overlay",
			Advice: "run decree as its owner" + OrClone}
	}
	if onOverlay(p.Dir) {
		return &Refusal{Mechanism: Overlay, Reason: p.Dir.Path() + " lies on an overlay itself, as in a container",
			Advice: "put the store on a volume (DECREE_STORE for a new project)"}
	}
	return nil
}

// inOverlay is the directory of the layer in whose mount path lies, "" where it lies in none.
func inOverlay(path string) string {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	return overlay.Over(mounts, path)
}

// MountsBelow lists what is mounted below root, a path without links; nothing where that is not known.
func MountsBelow(root string) []overlay.Mounted {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return overlay.Below(mounts, root)
}

// onOverlay says whether d lies on an overlay; false where that is not known.
func onOverlay(d disk.Dir) bool {
	fd, ok := disk.FD(d)
	var fs unix.Statfs_t
	return ok && unix.Fstatfs(fd, &fs) == nil && int64(fs.Type) == unix.OVERLAYFS_SUPER_MAGIC
}

// tryMount has a process mount an overlay over the root, and execute nothing in it.
func (p *Place) tryMount(scratch disk.Dir) error {
	for _, name := range []string{upperName, workName} {
		if err := scratch.Mkdir(name, 0o700); err != nil {
			return err
		}
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	process, err := gate.Start(gate.Command{
		Args:  []string{"none"},
		Attr:  syscall.ProcAttr{Dir: "/", Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}},
		Mount: &overlay.Mount{Root: p.Root.Path(), Layer: scratch.Path(), Name: "decree " + scratch.Path()},
	})
	if err == nil {
		err = process.Ready()
	}
	if err != nil {
		return p.Explain(err)
	}
	return nil
}

// Explain says why a mount was refused, also one that was made to work in.
func (p *Place) Explain(err error) *Refusal {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	return explain(userns.Read(), overlay.Below(mounts, p.Root.Path()), err)
}
