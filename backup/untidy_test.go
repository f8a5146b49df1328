package backup

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
)

// untidy is a target whose server refuses to say what dead uploads have left.
type untidy struct{ target.Target }

func (untidy) Tidy(context.Context, string) error { return errors.New("405") }

// TestATargetThatCannotBeTidiedTakesBackups: what is left there costs space, and is told.
func TestATargetThatCannotBeTidiedTakesBackups(t *testing.T) {
	w, told := newWorld(t), ""
	require.NoError(t, w.with(func(o Options) error {
		o.Target, o.Tell = untidy{o.Target}, func(text string) { told += text }
		_, err := generate(t.Context(), o)
		return err
	}))
	require.True(t, strings.HasSuffix(told, "was not removed, and takes space: 405"), told)
}
