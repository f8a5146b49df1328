package capture

import (
	"sync"
	"unsafe"

	"decree/tree"
)

// objects are those of a capture that stores nothing.
type objects struct {
	mu   sync.Mutex
	made map[Hash][]byte
}

// put keeps an object that the store lacks.
func (o *objects) put(b []byte, in Objects) Hash {
	h := tree.Sum(b)
	if in != nil && in.Has(h) {
		return h
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.made == nil {
		o.made = map[Hash][]byte{}
	}
	if _, known := o.made[h]; !known {
		o.made[h] = append([]byte(nil), b...)
	}
	return h
}

// Objects are those of the captured tree: what the capture made and could not store, else
// what the store has.
func (r *Result) Objects(store tree.Source) tree.Source { return overlay{r.objects, store} }

type overlay struct {
	made  *objects
	store tree.Source
}

func (o overlay) Get(h Hash) ([]byte, error) {
	o.made.mu.Lock()
	b, ok := o.made.made[h]
	o.made.mu.Unlock()
	if ok {
		return b, nil
	}
	return o.store.Get(h)
}

// Put is for the worker's tree.Writer.
func (k *worker) Put(b []byte) (Hash, error) { return k.putObject(b) }

func (k *worker) putObject(b []byte) (Hash, error) {
	if k.req.Writer == nil {
		return k.made.put(b, k.req.Store), nil
	}
	return k.req.Writer.PutTree(b)
}

// keptObject is the object of a directory whose block stands. It is made again if the
// cache is of a version that did not have it, or the store may lack it.
func (k *worker) keptObject(n *node) (Hash, error) {
	sound := !n.object.IsZero()
	if sound && k.req.CheckStore && k.req.Store != nil {
		sound = k.req.Store.Has(n.object)
	}
	if sound {
		return n.object, nil
	}
	return k.objectOf(n.old)
}

// objectOf makes the object of a directory.
func (k *worker) objectOf(b block) (Hash, error) {
	if k.facts != factsAll {
		return Hash{}, nil
	}
	if k.directory == nil {
		k.directory = tree.NewWriter(k)
	}
	err := b.plainly(func(i int) error {
		name := b.name(i)
		n := tree.Node{Name: unsafe.String(&name[0], len(name)), Entry: b.entry(i)} // it is not kept beyond Finish
		if b.kind(i) == kDir {
			n.SHA256 = Hash(b.hash(i))
		}
		return k.directory.Add(&n)
	})
	if err != nil {
		return Hash{}, err
	}
	return k.directory.Finish()
}

// plainly calls visit for each tracked record in byte order of the plain names.
func (b block) plainly(visit func(i int) error) error {
	dirs := dirsByName(b)
	for i := range b.count() {
		if k := b.kind(i); !k.tracked() || k == kDir {
			continue
		}
		for len(dirs) > 0 && string(b.name(int(dirs[0]))) < string(b.name(i)) {
			if err := visit(int(dirs[0])); err != nil {
				return err
			}
			dirs = dirs[1:]
		}
		if err := visit(i); err != nil {
			return err
		}
	}
	for _, i := range dirs {
		if err := visit(int(i)); err != nil {
			return err
		}
	}
	return nil
}

// oneOfEach leaves the directory of a name that was listed twice, as a file and as a
// directory, while others renamed.
func (b block) oneOfEach() {
	dirs := dirsByName(b)
	for i := range b.count() {
		if k := b.kind(i); !k.tracked() || k == kDir {
			continue
		}
		for len(dirs) > 0 && string(b.name(int(dirs[0]))) < string(b.name(i)) {
			dirs = dirs[1:]
		}
		if len(dirs) == 0 {
			return
		}
		if string(b.name(int(dirs[0]))) == string(b.name(i)) {
			b.setKind(i, kNone)
		}
	}
}
