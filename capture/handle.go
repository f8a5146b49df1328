package capture

import "decree/disk"

// handle is an open directory of a walk. Names come with the zero byte that ends them,
// which the system wants. It is safe for concurrent use.
type handle interface {
	self() (disk.Info, error)
	list(*listing) error
	stat(cname []byte, in *disk.Info) error
	readlink(cname []byte) (string, error)
	// open opens a regular file and says what it is.
	open(cname []byte, in *disk.Info) (disk.File, error)
	openDir(cname []byte) (handle, error)
	// steady says whether the file system changes a directory's times with each
	// change of its names, so that an unchanged one need not be listed.
	steady() bool
	// changeTimes says whether the file system keeps a change time of its own, which
	// nobody can set.
	changeTimes() bool
	close()
}

// listing is the names of one directory, in the order the system gave them. It is used
// again for each directory of a worker.
type listing struct {
	names []byte // each ended by a zero byte
	ents  []listed
	raw   []byte // the system's own form
}

type listed struct {
	off, len uint32
	kind     disk.Kind
	as       kind  // what the walk takes it for
	old      int32 // its record in the cached block, -1: none
}

func (l *listing) reset() { l.names, l.ents = l.names[:0], l.ents[:0] }

func (l *listing) add(name []byte, k disk.Kind) {
	l.ents = append(l.ents, listed{off: uint32(len(l.names)), len: uint32(len(name)), kind: k, old: -1})
	l.names = append(append(l.names, name...), 0)
}

func (l *listing) name(i int) []byte  { e := &l.ents[i]; return l.names[e.off : e.off+e.len] }
func (l *listing) cname(i int) []byte { e := &l.ents[i]; return l.names[e.off : e.off+e.len+1] }

// portable walks on the disk interface.
type portable struct{ d disk.Dir }

func (p portable) self() (disk.Info, error) { return p.d.Self() }

func (p portable) list(l *listing) error {
	l.reset()
	ents, err := p.d.List()
	if err != nil {
		return err
	}
	for _, e := range ents {
		l.add([]byte(e.Name), e.Kind)
	}
	return nil
}

func plainName(cname []byte) string { return string(cname[:len(cname)-1]) }

func (p portable) stat(cname []byte, in *disk.Info) (err error) {
	*in, err = p.d.Stat(plainName(cname))
	return err
}

func (p portable) readlink(cname []byte) (string, error) { return p.d.Readlink(plainName(cname)) }

func (p portable) open(cname []byte, in *disk.Info) (disk.File, error) {
	f, err := p.d.Open(plainName(cname))
	if err != nil {
		return nil, err
	}
	if *in, err = f.Stat(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (p portable) openDir(cname []byte) (handle, error) {
	d, err := p.d.OpenDir(plainName(cname))
	if err != nil {
		return nil, err
	}
	return portable{d}, nil
}

func (p portable) steady() bool { return false }

func (p portable) changeTimes() bool {
	d, ok := p.d.(interface{ ChangeTimes() bool })
	return !ok || d.ChangeTimes()
}

func (p portable) close() { p.d.Close() }

// borrowed is a root handle, which belongs to the caller.
type borrowed struct{ handle }

func (borrowed) close() {}

func rootHandle(req *Request) handle {
	if !req.Portable {
		if h := fastHandle(req.Root); h != nil {
			return borrowed{h}
		}
	}
	return borrowed{portable{req.Root}}
}
