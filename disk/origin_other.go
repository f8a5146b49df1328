//go:build !linux && !darwin

package disk

func (d *osDir) Origin() (Origin, error) { return Origin{}, nil }
func (d *osDir) Born(string) int64       { return 0 }
