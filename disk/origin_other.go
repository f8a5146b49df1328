//go:build !linux && !darwin

package disk

func (d *osDir) Origin() (Origin, error) { return Origin{}, nil }
