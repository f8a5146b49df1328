package words

import (
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	table, err := Tally(strings.NewReader("the cat and the hat."))
	if err != nil || table["the"] != 2 || table["hat"] != 1 {
		t.Fatalf("got %v, %v", table, err)
	}
}
