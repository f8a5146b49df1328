package project

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMachine(t *testing.T) {
	home, root := ground(t)
	w := Where{Cwd: root, Home: home}
	machine := func(p *Project) string {
		t.Helper()
		id, err := p.Machine()
		require.NoError(t, err)
		assert.True(t, validID(id), id)
		return id
	}
	p, beside := open(t, w, true), open(t, w, true)
	id := machine(p)
	assert.Equal(t, id, machine(p))
	assert.Equal(t, id, machine(beside), "what another process has written counts")
	assert.Equal(t, id, machine(open(t, w, true)))

	other := filepath.Join(filepath.Dir(root), "other")
	require.NoError(t, os.Mkdir(other, 0o755))
	q := open(t, Where{Cwd: other, RootFlag: other, Home: home}, true)
	assert.NotEqual(t, p.ID, q.ID)
	assert.Equal(t, id, machine(q), "all projects have the same")

	require.NoError(t, q.Converting(true))
	assert.Equal(t, id, machine(open(t, Where{Cwd: other, RootFlag: other, Home: home}, true)), "it stays")

	// Lost with the stores, it is another one.
	require.NoError(t, os.RemoveAll(p.StorePath))
	require.NoError(t, os.RemoveAll(q.StorePath))
	require.NoError(t, os.RemoveAll(filepath.Join(other, ".decree")))
	assert.NotEqual(t, id, machine(open(t, Where{Cwd: other, RootFlag: other, Home: home}, true)))
}
