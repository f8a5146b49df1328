package fence

import (
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"decree/runner/userns"
)

const (
	onFiles landlock.AccessFSSet = ll.AccessFSWriteFile | ll.AccessFSTruncate
	writing landlock.AccessFSSet = onFiles | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeChar | ll.AccessFSMakeDir |
		ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeBlock | ll.AccessFSMakeSym | ll.AccessFSRefer
)

// Kernel is the version of the kernel's Landlock, 0 where it has none.
func Kernel() int {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return abi
}

// Attr adds to attr what gives a process its namespaces.
func (f Fence) Attr(attr *syscall.SysProcAttr) error {
	if !f.NoNet {
		return nil
	}
	attr.Cloneflags |= unix.CLONE_NEWNET
	if !needsUsers() {
		return nil
	}
	return userns.Attr(attr, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP)
}

// needsUsers says whether this process may make other namespaces only in a user namespace.
func needsUsers() bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	err := unix.Capget(&head, &has[0])
	return err != nil || has[0].Effective&(1<<unix.CAP_SYS_ADMIN) == 0
}

// Unplug brings up the loopback in a process that Attr gave its namespaces. An error is an
// *Error.
func (f Fence) Unplug() error {
	if !f.NoNet {
		return nil
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return &Error{"open a socket", err}
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err == nil {
		err = unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, lo)
	}
	if err == nil {
		lo.SetUint16(lo.Uint16() | unix.IFF_UP)
		err = unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo)
	}
	if err != nil {
		return &Error{"bring up the loopback", err}
	}
	return nil
}

// Enclose keeps this process's writes to f.Write, as far as the kernel can. Mounts are made
// before it. An error is an *Error.
func (f Fence) Enclose() error {
	if f.Write == nil {
		return nil
	}
	if hold, _ := HoldOf(Kernel()); hold == None {
		return nil
	}
	var rules []landlock.Rule
	for _, path := range f.Write {
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil {
			continue
		}
		rights := onFiles
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			rights = writing
		}
		rules = append(rules, landlock.PathAccess(rights, path).IgnoreIfMissing())
	}
	config, err := landlock.NewConfig(writing)
	if err == nil {
		err = config.BestEffort().RestrictPaths(rules...)
	}
	if err != nil {
		return &Error{"set the fence", err}
	}
	return nil
}
