//go:build !linux

package layer

import (
	"errors"

	"decree/disk"
	"decree/layer/overlay"
	"decree/runner/userns"
)

func (p *Place) unfit() error { return p.Explain(errors.ErrUnsupported) }

func (p *Place) tryMount(disk.Dir) error { return p.Explain(errors.ErrUnsupported) }

// Explain says why a mount was refused.
func (p *Place) Explain(err error) *Refusal { return explain(userns.Policy{}, nil, err) }

// MountsBelow lists what is mounted below root; here that is not known.
func MountsBelow(string) []overlay.Mounted { return nil }

func inOverlay(string) string { return "" }
