package backup

import (
	"context"

	"decree/backup/target"
)

// findOf finds the directory of the project with an id.
func findOf(ctx context.Context, t target.Target, name, id string) (*Place, error) {
	return find(ctx, t, name, func(p *Place) bool { return p.whose() == id })
}
