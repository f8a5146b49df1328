package overlay

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const mountinfo = `22 28 0:21 / /proc rw,relatime - proc proc rw
28 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
90 28 0:40 / /home/a\040b/root rw,relatime - overlay decree\040/s/layers/one\134 rw,lowerdir=x,upperdir=y
91 28 0:41 / /home/a\040b/root/in\011ner rw shared:2 master:1 - overlay overlay rw
92 28 0:42 / /home/a\040b/rooted rw - tmpfs decree\040two rw
`

func TestWithin(t *testing.T) {
	for name, want := range map[string]bool{
		`decree /s/layers/one\`: true, `decree /s/layers/one`: false, "overlay": true, "decree two": false, "": false,
	} {
		assert.Equal(t, want, Within([]byte(mountinfo), name), name)
	}
}

func TestBelow(t *testing.T) {
	assert.Equal(t, []Mounted{{At: "/home/a b/root/in\tner", What: "overlay overlay /"}}, Below([]byte(mountinfo), "/home/a b/root"))
	assert.Equal(t, []Mounted{{At: "/m", What: "ext4 /d", Local: true}}, Below([]byte("40 28 7:0 /d /m rw - ext4 /dev/loop0 rw\n"), "/"))
	assert.Len(t, Below([]byte("40 28 7:0 /d /home/C#/a\\040b/m rw - ext4 /dev/loop0 rw\n"), "/home/C#/a b"), 1)
	assert.Equal(t, "/r/a\u00a0b", Below([]byte("40 28 7:0 /d /r/a\u00a0b rw - ext4 /dev/loop0 rw\n"), "/r")[0].At, "a blank that is not the kernel's")
	assert.Empty(t, Below([]byte(mountinfo), "/home/a b/rooted"))
	assert.Len(t, Below([]byte(mountinfo), "/"), 5, "the root of all, too")
}

func TestOver(t *testing.T) {
	const one = `/s/layers/one\`
	for path, want := range map[string]string{
		"/home/a b/root": one, "/home/a b/root/x/y": one, "/home/a b/rooted": "", "/home/a b": "", "/": "",
		"/home/a b/root/in\tner/x": "", "/home/a b/root/in": one,
	} {
		assert.Equal(t, want, Over([]byte(mountinfo), path), path)
	}
}

func TestWords(t *testing.T) {
	m := &Mount{Root: "/r", Layer: "/l", held: 5, Name: "n", Dir: "/d", Dev: 1 << 63, Ino: 7, Below: "/b"}
	got, err := parse(m.Words(5))
	require.NoError(t, err)
	assert.Equal(t, m, got)
	_, err = parse(nil)
	assert.Error(t, err)
}
