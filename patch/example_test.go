package patch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"decree/patch"
	"decree/tree"
)

// A diff is written change by change, in byte order of the paths, and read section by
// section; a section turns either content into the other.
func Example() {
	old, new := []byte("package a\nvar x = 1\n"), []byte("package a\nvar x = 2\n")
	entry := func(data []byte) *tree.Entry {
		return &tree.Entry{SHA256: tree.Sum(data), Size: int64(len(data)), Mode: 0o644}
	}

	var diff bytes.Buffer
	w := patch.NewWriter(&diff, patch.Limits{})
	err := w.Write(context.Background(), patch.Change{
		Path: "main.go",
		Old:  entry(old), OldContent: patch.Bytes(old),
		New: entry(new), NewContent: patch.Bytes(new),
	})
	if err = errors.Join(err, w.Close()); err != nil {
		fmt.Println(err)
	}
	_, shown, _ := strings.Cut(diff.String(), "diff --git")
	fmt.Print("diff --git", shown)

	r := patch.NewReader(&diff)
	for {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		back, err := s.Reverse(new)
		fmt.Printf("%s %s: %q %v\n", s.Op, s.Path, back, err)
	}
	// Output:
	// diff --git a/main.go b/main.go
	// --- a/main.go
	// +++ b/main.go
	// @@ -1,2 +1,2 @@
	//  package a
	// -var x = 1
	// +var x = 2
	// modify main.go: "package a\nvar x = 1\n" <nil>
}
