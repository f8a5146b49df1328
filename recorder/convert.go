package recorder

import (
	"context"
	"fmt"

	"decree/project"
)

// convert brings a store of an earlier version into the present form, once. The lock is
// held. What it reads stays until all that it writes is durable, and from the first
// thing that an earlier decree would not understand that one refuses the store: a death
// anywhere has it done again, and loses nothing.
func (r *Recorder) convert(x *writeSession) error {
	if err := r.project.Reread(); err != nil || !r.project.Outdated() {
		return err
	}
	c, err := r.history.Convert(x.w, func(done, total int) {
		r.progress(Progress{Phase: "converting", Done: int64(done), Total: int64(total)})
	})
	if err == nil {
		err = x.w.Flush()
	}
	if err == nil {
		err = r.project.Converting(false)
	}
	if err == nil {
		err = c.Replace()
	}
	if err == nil {
		err = r.project.Converting(true)
	}
	if err != nil {
		return notConverted(err)
	}
	r.note("the store was converted to version 2; earlier versions of decree cannot use it any more")
	for _, lost := range c.Lost {
		r.note("not converted, because it was damaged before: %v", lost)
	}
	return nil
}

func notConverted(err error) error {
	return &project.Error{Kind: project.KindOf(err), Err: err, Msg: "the store is of an earlier version and could not be converted; it is as it was",
		Advice: "remove the cause; the next command converts it"}
}

// convertFirst converts a store before anything else is done with it.
func (r *Recorder) convertFirst(ctx context.Context) error {
	if !r.project.Outdated() {
		return nil
	}
	x, err := r.lock(ctx, movesFiles) // no run may be under way in the old form
	if err == nil {
		err = r.convert(x)
		x.close()
	}
	if err != nil {
		return fmt.Errorf("the store is of an earlier version and has to be converted first: %w", err)
	}
	return r.reopen()
}

// convertedReader opens a Reader of a store of an earlier version, converted.
func convertedReader(opt ReaderOptions) (*Reader, error) {
	r, err := Open(context.Background(), Options{ReaderOptions: opt})
	if err != nil {
		return nil, err
	}
	if err := r.Close(); err != nil {
		return nil, err
	}
	return OpenReader(opt)
}
