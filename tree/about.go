package tree

import "errors"

// aboutError is an error about a path of the tree. Its text is the path, as [Quote] writes
// it, and the cause.
type aboutError struct {
	Path Path
	Err  error
}

func (e *aboutError) Error() string { return Quote(e.Path) + ": " + e.Err.Error() }

func (e *aboutError) Unwrap() error { return e.Err }

// About is the path.
func (e *aboutError) About() Path { return e.Path }

// Because is the cause without the path.
func (e *aboutError) Because() string { return e.Err.Error() }

// At gives err the path that it is about, unless it or what it wraps has one, as errors with
// an About method do: their text begins with it.
func At(path Path, err error) error {
	var has interface {
		error
		About() Path
	}
	if err == nil || errors.As(err, &has) {
		return err
	}
	return &aboutError{path, err}
}

// Because is what err says of its path, for who shows the path beside it.
func Because(err error) string {
	if e, ok := err.(interface{ Because() string }); ok { //nolint:errorlint // what wraps it says more
		return e.Because()
	}
	return err.Error()
}
