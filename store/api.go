package store

import (
	"context"
	"errors"
	"iter"
)

var errTodo = errors.New("not built yet")

type Object struct {
	Hash Hash
	Size int64
	List bool   // stored as chunks, which are objects of their own
	Pack string // file name of the pack that holds it
}

func (s *Store) Objects() iter.Seq[Object] { return func(func(Object) bool) {} }

type Stats struct {
	Packs   int
	Bytes   int64 // of all packs
	Objects int64 // chunks and lists among them
}

func (s *Store) Stats() (Stats, error) { return Stats{}, errTodo }

// Problem is one finding of Check or Rebuild.
type Problem struct {
	Pack   string
	Offset int64
	Length int64
	Hash   Hash // zero: not known
	Err    error
}

func (s *Store) Check(ctx context.Context) ([]Problem, error)   { return nil, errTodo }
func (s *Store) Rebuild(ctx context.Context) ([]Problem, error) { return nil, errTodo }

type CompactOptions struct {
	Force bool // rewrite every pack that holds a dead object, not only mostly dead ones
}

type Compacted struct {
	Freed   int64    // bytes of packs, less what was written
	Packs   int      // packs rewritten or removed
	Objects int64    // dead objects dropped
	Kept    []string // damaged packs that hold dead objects and were left as they are
}

func (s *Store) Compact(ctx context.Context, live func(Hash) bool, o CompactOptions) (Compacted, error) {
	return Compacted{}, errTodo
}
