// Package userns gives a process a user namespace of its own, in which a plain user may
// make mounts and networks: the process keeps its user and group, which are mapped to
// themselves, and has capabilities in the namespace until it gives them up for good. Where
// a system refuses that, Policy says which of its settings forbids it, and what would help.
//
// It is used by a process before it executes a command (see package gate). On other systems
// than Linux nothing of this is there.
package userns

import "strings"

// A Policy is what of the machine's settings can forbid user namespaces, or mounts and
// networks in them.
type Policy struct {
	AppArmor  bool // programs without a profile get no capabilities in theirs
	Off       bool // a distribution's switch is off for plain users
	Exhausted bool // not one may be made
	Filtered  bool // a filter of system calls is on, as in a container
}

// Reason is the first of the settings that forbids, and what would help; "" where it is
// none of them.
func (p Policy) Reason() (reason, advice string) {
	switch {
	case p.Exhausted:
		return "no user namespaces may be made: user.max_user_namespaces is 0", "sudo sysctl user.max_user_namespaces=10000"
	case p.Off:
		return "users may not make user namespaces: kernel.unprivileged_userns_clone is 0", "sudo sysctl kernel.unprivileged_userns_clone=1"
	case p.AppArmor:
		return "AppArmor lets only programs with a profile use user namespaces", "install the profile that 'decree doctor' prints"
	case p.Filtered:
		return "a filter of system calls forbids it, as in a container", "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
	}
	return "", ""
}

// Profile is the AppArmor profile that lets the program exe use user namespaces.
func Profile(exe string) string {
	return `abi <abi/4.0>,
include <tunables/global>

profile decree "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(exe) + `" flags=(unconfined) {
  userns,
  include if exists <local/decree>
}
`
}
