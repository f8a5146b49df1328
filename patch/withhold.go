package patch

// Withheld returns the section as it stands in a diff that leaves the contents to
// the store, whatever their size: facts and header, without hunks or payload. A
// section without contents is returned as it is.
func (s *Section) Withheld() []byte {
	switch s.Op {
	case OpCreate, OpDelete, OpModify:
	default:
		return s.Raw
	}
	w := *s
	w.Binary, w.Stored = true, true
	return w.appendHeader(w.appendFacts(nil))
}
