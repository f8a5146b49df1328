package recorder

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"io"
	"maps"

	"decree/history"
	"decree/project"
)

// extraActs is the place in an open record of where the log of acts goes on from its own files.
const extraActs = "acts"

// actsOf is where the acts that followed the beginning of a record stand; nil: not known.
func actsOf(o *history.Opened) *int64 {
	var from *int64
	if json.Unmarshal(o.Extra[extraActs], &from) != nil {
		return nil
	}
	return from
}

// asActed are files as they are after what people's commands have done to them since. One
// whose name was given to another file, as its own had been deleted, is in it too.
func (r *Recorder) asActed(from *int64, files []ownFile) (out []ownFile, err error) {
	if from == nil {
		return files, nil
	}
	now := map[string]ownFile{}
	acted := map[string]bool{}
	var order []string
	var displaced []ownFile
	for _, f := range files {
		now[f.Path] = f
	}
	var last project.Act
	err = r.project.EachAct(*from, func(at int64, a project.Act) {
		name := string(a.Path)
		if a.New && last.Gone && !bytes.Equal(a.Path, last.Path) { // a move, of which a death may have left an earlier try
			maps.DeleteFunc(now, func(_ string, f ownFile) bool {
				return f.act != 0 && f.Ino == a.Ino && f.Hash == sha256.Sum256(a.Data)
			})
		}
		last = a
		if was, there := now[name]; there && a.New {
			was.beside = true
			displaced = append(displaced, was)
		}
		delete(now, name)
		if !a.Gone {
			now[name] = ownFile{Path: name, Mode: a.Mode, Ino: a.Ino, Hash: sha256.Sum256(a.Data), act: at + 1}
		}
		if !acted[name] {
			acted[name] = true
			order = append(order, name)
		}
	})
	for _, f := range files {
		if !acted[f.Path] {
			out = append(out, f)
		}
	}
	for _, name := range order {
		if f, there := now[name]; there {
			out = append(out, f)
		}
	}
	return append(out, displaced...), err
}

// writeOwn writes the content of a file that is to be written again.
func (r *Recorder) writeOwn(to io.Writer, f ownFile) error {
	if f.act != 0 {
		a, err := r.project.ActAt(f.act - 1)
		if err == nil {
			_, err = to.Write(a.Data)
		}
		return err
	}
	from, _, err := r.store.Open(f.Hash)
	if err != nil {
		return err
	}
	defer from.Close()
	_, err = io.Copy(to, from)
	return err
}
