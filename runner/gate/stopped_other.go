//go:build unix && !linux

package gate

// keepAwake does nothing where children cannot be listed.
func keepAwake() (end func()) { return func() {} }
