package patch

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestHeaderName(t *testing.T) {
	assert.Equal(t, "a/b+c-d,e~f", headerName("a/", "b+c-d,e~f"))
	assert.Equal(t, `"a/b c"`, headerName("a/", "b c"))
	assert.Equal(t, `"a/\303\251\\\"\t"`, headerName("a/", "é\\\"\t"))
}
