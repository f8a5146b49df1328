package recorder

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/project"
)

// TestPublishesAndEntersInAnyOrder: a file of a draft is published, taken back, published again and changed by commands in the layer, in any order, beside another one. At the
// end a publish of all has the tree as the layer is, or is refused.
func TestPublishesAndEntersInAnyOrder(t *testing.T) {
	texts := map[byte]string{'A': "a1\na2\na3\n", 'B': "b1\na2\na3\n", 'C': "b1\na2\nc3\n", 'D': ""}
	orders := []string{"PCA", "PDUB", "PUDBP", "PDBD", "PCDRBU", "PUCRC", "PCPUU", "PAUR", "PAN", "PAGUR"} // each lost something once
	cases, refused := 12, 0
	if !testing.Short() {
		cases = 120
	}
	for seed := range uint64(cases) {
		r := rand.New(rand.NewPCG(seed, 2))
		order := []byte("P")
		for range 2 + r.IntN(4) {
			order = append(order, "PABCDURNG"[r.IntN(9)])
		}
		orders = append(orders, string(order))
	}
	for i, order := range orders {
		begun := []string{texts['A'], ""}[i%2]
		t.Run(fmt.Sprintf("%s,%d", order, i), func(t *testing.T) {
			b := &isolatedBench{newBench(t), IsolatedOptions{Copy: true}}
			if begun != "" {
				b.write("f", begun)
			}
			b.write("g", "g\n")
			b.checkpoint(CheckpointOptions{})
			script := func(text string) string {
				if text == "" {
					return "rm -f f"
				}
				return fmt.Sprintf("printf '%%s' '%s' >f", text)
			}
			layer := texts['B']
			b.isolated(script(layer) + "; echo more >>g")
			for _, op := range []byte(order) {
				switch op {
				case 'P':
					_ = b.publish("f") // nothing of it may be left
				case 'G':
					_ = b.publish("g")
				case 'N':
					_ = b.enter("true", disk.OS) // nothing of the draft may wait
				case 'U', 'R':
					r := b.open()
					if op == 'U' {
						_, _ = r.Undo(context.Background(), UndoOptions{})
					} else {
						_, _ = r.Redo(context.Background(), UndoOptions{})
					}
					r.Close()
				default:
					if err := b.enter(script(texts[op]), disk.OS); err == nil {
						layer = texts[op]
					} else { // it was published as a whole
						require.True(t, project.KindOf(err) == project.NotFound || strings.Contains(err.Error(), "is gone"), err)
					}
				}
			}
			if err := b.publish(); errors.As(err, new(*ConflictError)) {
				refused++
				return
			} else if err != nil {
				require.ErrorContains(t, err, "no draft")
			}
			now, err := os.ReadFile(b.root + "/f")
			if layer == "" {
				require.ErrorIs(t, err, os.ErrNotExist)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, layer, string(now))
		})
	}
	require.Less(t, refused, len(orders)/3)
}
