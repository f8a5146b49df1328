package backup

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io/fs"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/project"
)

// exported is the zip of a world's newest generation.
func exported(t *testing.T) (*world, []byte) {
	w := newWorld(t)
	var out bytes.Buffer
	require.NoError(t, w.with(func(o Options) error {
		place, err := findOf(t.Context(), o.Target, "tree", o.Recorder.Project().ID)
		require.NoError(t, err)
		src, err := place.Generation(t.Context(), place.Manifest.Generation())
		require.NoError(t, err)
		return stageIn(t, w.m, src, func(s *Staged) error { return s.WriteZip(t.Context(), &out) })
	}))
	return w, out.Bytes()
}

func stageIn(t *testing.T, m *disktest.Mem, src *Source, do func(*Staged) error) error {
	dir, err := m.MkdirAll("/w/stage", 0o700)
	require.NoError(t, err)
	defer dir.Close()
	root, err := m.OpenRoot("/w")
	require.NoError(t, err)
	defer func() { require.NoError(t, disk.RemoveTree(root, "stage")) }()
	s, err := Stage(t.Context(), src, dir, project.Site{Disk: m, Store: dir}, func(int64, int64) {})
	if err != nil {
		return err
	}
	defer s.Close()
	return do(s)
}

// edited writes a zip again with what edit makes of each entry's name and bytes; nil drops it.
func edited(t *testing.T, data []byte, edit func(h *zip.FileHeader, b []byte) []byte, more ...func(*zip.Writer)) []byte {
	in, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range in.File {
		r, err := f.Open()
		require.NoError(t, err)
		var b bytes.Buffer
		_, err = b.ReadFrom(r)
		require.NoError(t, err)
		h := &zip.FileHeader{Name: f.Name, Method: zip.Deflate}
		h.SetMode(0o600)
		if now := edit(h, b.Bytes()); now != nil {
			to, err := z.CreateHeader(h)
			require.NoError(t, err)
			_, err = to.Write(now)
			require.NoError(t, err)
		}
	}
	for _, add := range more {
		add(z)
	}
	require.NoError(t, z.Close())
	return out.Bytes()
}

func same(_ *zip.FileHeader, b []byte) []byte { return append([]byte{}, b...) }

func adding(name string, mode fs.FileMode, data []byte) func(*zip.Writer) {
	return func(z *zip.Writer) {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(mode)
		w, err := z.CreateHeader(h)
		if err == nil {
			_, _ = w.Write(data)
		}
	}
}

func TestHostileArchivesAreRefused(t *testing.T) {
	w, good := exported(t)
	try := func(data []byte) error {
		src, err := FromZip(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return err
		}
		return stageIn(t, w.m, src, func(*Staged) error { return nil })
	}
	require.NoError(t, try(good))
	require.NoError(t, try(edited(t, good, same)), "another zip program may have written it again")
	manifest := func(change func(string) string) []byte {
		return edited(t, good, func(h *zip.FileHeader, b []byte) []byte {
			if h.Name == manifestFile {
				return []byte(change(string(b)))
			}
			return b
		})
	}
	without := func(part string) []byte {
		dropped := false
		return edited(t, good, func(h *zip.FileHeader, b []byte) []byte {
			if !dropped && strings.HasPrefix(h.Name, part) && len(b) > 0 {
				dropped = true
				return nil
			}
			return append([]byte{}, b...)
		})
	}
	changed := func(part string) []byte {
		done := false
		return edited(t, good, func(h *zip.FileHeader, b []byte) []byte {
			b = append([]byte{}, b...)
			if !done && strings.HasPrefix(h.Name, part) && len(b) > 0 {
				done = true
				b[len(b)-1] ^= 1
			}
			return b
		})
	}
	overlap := bytes.Clone(good) // every entry of the directory says that its bytes are all of the file
	for at := 0; ; {
		i := bytes.Index(overlap[at:], []byte("PK\x01\x02"))
		if i < 0 {
			break
		}
		at += i + 4
		binary.LittleEndian.PutUint32(overlap[at+16:], uint32(len(good)))
	}
	for name, data := range map[string][]byte{
		"nothing":         {},
		"no zip":          []byte("hello"),
		"cut":             good[:len(good)/2],
		"without its end": good[:len(good)-1],
		"no manifest": edited(t, good, func(h *zip.FileHeader, b []byte) []byte {
			return map[bool][]byte{false: append([]byte{}, b...)}[h.Name == manifestFile]
		}),
		"a manifest that is no JSON": manifest(func(string) string { return "{" }),
		"a newer manifest":           manifest(func(s string) string { return strings.Replace(s, `"version": 1`, `"version": 2`, 1) }),
		"another project's form":     manifest(func(s string) string { return strings.Replace(s, `"project": "`, `"project": "x`, 1) }),
		"a file outside":             manifest(func(s string) string { return strings.Replace(s, `"config.yml"`, `"../config.yml"`, 1) }),
		"an absolute file":           manifest(func(s string) string { return strings.Replace(s, `"config.yml"`, `"/config.yml"`, 1) }),
		"a mode with set-user-ID":    manifest(func(s string) string { return strings.Replace(s, `"mode": "644"`, `"mode": "4755"`, 1) }),
		"a negative size":            manifest(func(s string) string { return strings.Replace(s, `"size": `, `"size": -`, 1) }),
		"a wrong size":               manifest(func(s string) string { return strings.Replace(s, `"size": `, `"size": 9`, 1) }),
		"another tree":               manifest(func(s string) string { return strings.Replace(s, `"tree": "`, `"tree": "00`, 1) }),
		"no tree": manifest(func(s string) string {
			return regexp.MustCompile(`"tree": "[0-9a-f]{64}"`).ReplaceAllString(s, `"tree": "`+strings.Repeat("0", 64)+`"`)
		}),
		"a file that leaves":          edited(t, good, same, adding("../x", 0o600, []byte("x"))),
		"an absolute one":             edited(t, good, same, adding("/etc/x", 0o600, []byte("x"))),
		"one that leaves from within": edited(t, good, same, adding("tree/a/../../x", 0o600, []byte("x"))),
		"a backslash":                 edited(t, good, same, adding(`tree\..\x`, 0o600, []byte("x"))),
		"a link":                      edited(t, good, same, adding("tree/link", fs.ModeSymlink|0o777, []byte("/etc/passwd"))),
		"a pipe":                      edited(t, good, same, adding("tree/pipe", fs.ModeNamedPipe|0o600, nil)),
		"a name twice":                edited(t, good, same, adding("config.yml", 0o600, []byte("store: /etc"))),
		"what the manifest lacks":     edited(t, good, same, adding("routines/evil.sh", 0o600, []byte("rm -rf /"))),
		"a content by another hash":   edited(t, good, same, adding("contents/"+strings.Repeat("00", 32), 0o600, []byte("x"))),
		"a content by no hash":        edited(t, good, same, adding("contents/x", 0o600, []byte("x"))),
		"a bomb":                      edited(t, good, same, adding("tree/zeros", 0o600, make([]byte, 64<<20))),
		"a record is missing":         without(recordsPart + "2"),
		"a content is missing":        without(contentsPart),
		"the log is missing":          without(logPart),
		"a changed record":            changed(recordsPart),
		"a changed content":           changed(contentsPart),
		"a changed file of the tree":  changed(treePart),
		"a changed log":               changed(logPart),
		"overlapping files":           overlap,
		"sizes of files that wrap":    manifest(func(s string) string { return strings.ReplaceAll(s, `"size": `, `"size": 9000000000000000`) }),
		"counts that wrap": manifest(func(s string) string {
			return strings.NewReplacer(`"bytes": `, `"bytes": 900000000000000`, `"tree_bytes": `, `"tree_bytes": 900000000000000`).Replace(s)
		}),
	} {
		t.Run(name, func(t *testing.T) { require.Error(t, try(data)) })
	}
	for i := range 200 { // flipped bits anywhere
		data := bytes.Clone(good)
		data[i*len(good)/200] ^= byte(1 << (i % 8))
		if err := try(data); err == nil { // in a time or a comment: what came out has all its hashes
			continue
		}
	}
}

// TestSizesThatWrap has an archive whose entries say that they take up so much of it that the sum is little again, which would let each make any
// amount of its bytes: it is refused before any is read.
func TestSizesThatWrap(t *testing.T) {
	_, good := exported(t)
	wrapping := func(z *zip.Writer) {
		for _, name := range []string{"tree/one", "tree/two"} {
			h := &zip.FileHeader{Name: name, Method: zip.Store, CompressedSize64: 1 << 63, UncompressedSize64: 1000}
			h.SetMode(0o600)
			_, err := z.CreateRaw(h)
			require.NoError(t, err)
		}
	}
	data := edited(t, good, same, wrapping)
	_, err := FromZip(bytes.NewReader(data), int64(len(data)))
	require.ErrorContains(t, err, "it says that it holds more bytes than it has")

	m := &Manifest{Counts: Counts{Bytes: math.MaxInt64, TreeBytes: math.MaxInt64}}
	require.ErrorContains(t, (&zipped{files: map[string]*zip.File{}}).withinManifest(m), "more bytes than any disk has")
	var out bytes.Buffer
	_, err = (&atMost{&out, 3}).Write([]byte("four"))
	require.ErrorIs(t, err, errSize)
	require.Empty(t, out.Bytes())
}

// TestDamageIsNamed damages each file of a target in several ways: a generation is restored to its
// hashes, or it is refused as damaged.
func TestDamageIsNamed(t *testing.T) {
	base := newWorld(t)
	before := base.copy().generations("before")
	var names []string
	require.NoError(t, base.with(func(o Options) error {
		return listNames(t, o, &names)
	}))
	for _, name := range names {
		for way, spoil := range map[string]func([]byte) []byte{
			"a flipped bit": func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
			"cut":           func(b []byte) []byte { return b[:len(b)/2] },
			"longer":        func(b []byte) []byte { return append(b, 'x') },
			"another's":     func([]byte) []byte { return []byte("something else") },
			"deleted":       func([]byte) []byte { return nil },
		} {
			w := base.copy()
			dir, err := w.m.OpenRoot("/w/target/" + name[:strings.LastIndexByte(name, '/')])
			require.NoError(t, err)
			file := name[strings.LastIndexByte(name, '/')+1:]
			data, err := project.ReadFile(dir, file, 1<<30)
			require.NoError(t, err)
			require.NoError(t, dir.Remove(file))
			if data = spoil(append(data, 0)[:len(data)]); data != nil {
				require.NoError(t, project.ReplaceFile(dir, file, data, 0o600, true))
			}
			require.NoError(t, w.with(func(o Options) error {
				place, err := findOf(t.Context(), o.Target, "tree", o.Recorder.Project().ID)
				if err != nil || place.Manifest == nil {
					require.True(t, err == nil || project.KindOf(err) == project.Integrity, "%s %s: %v", name, way, err)
					return nil
				}
				for generation, is := range before {
					src, err := place.Generation(t.Context(), generation)
					if err == nil {
						err = stageIn(t, w.m, src, func(s *Staged) error {
							require.Equal(t, is, keyOf(s.Manifest), "%s %s", name, way)
							for h := range s.Needs.All() {
								require.NoError(t, s.Store.Verify(h))
							}
							return nil
						})
					}
					if err != nil {
						require.Equal(t, project.Integrity, project.KindOf(err), "%s %s: %v", name, way, err)
						require.ErrorContains(t, err, generation, "%s %s", name, way)
					}
				}
				return nil
			}), "%s %s", name, way)
		}
	}
}
