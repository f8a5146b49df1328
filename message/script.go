package message

import (
	"bytes"
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxHead is how much of a script is looked at for its head, in bytes.
const maxHead = 64 << 10

// readScript fills in the description and the parameters. The head of a script is its
// comments, blank lines and assignments up to the first other statement. The description
// is the first block of comment lines, without the "#!" line. A parameter is an
// assignment that takes its own name from the environment:
//
//	name="${name:-default}"    also ${name-default}, ${name:=default}, ${name:?why}, $name
//
// and so is one with export, readonly or declare before it. Other assignments are only
// passed over. What cannot be parsed ends the head: bash will say what is wrong with it.
func (r *Routine) readScript(data []byte) {
	data = bytes.TrimPrefix(data[:min(len(data), maxHead)], bom)
	r.Description = commentBlock(string(data))
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash))
	// Breaking off would make the parser panic over a here-document without an end.
	for s, err := range parser.StmtsSeq(bytes.NewReader(data)) {
		if r.HeadEnd == 0 {
			r.readStatement(s, err)
		}
	}
}

func (r *Routine) readStatement(s *syntax.Stmt, err error) {
	var at syntax.ParseError
	if err != nil {
		r.HeadEnd = 1
		if errors.As(err, &at) {
			r.HeadEnd = int(at.Pos.Line())
		}
		return
	}
	assigns, ok := assignments(s)
	if !ok {
		r.HeadEnd = int(s.Pos().Line())
		return
	}
	for _, a := range assigns {
		if p, ok := parameter(a); ok && !r.Declares(p.Name) {
			r.Params = append(r.Params, p)
		}
	}
}

// commentBlock is the first block of comment lines before anything else.
func commentBlock(text string) string {
	var block []string
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		comment, ok := strings.CutPrefix(line, "#")
		switch {
		case i == 0 && strings.HasPrefix(line, "#!"), line == "" && block == nil:
			continue
		case !ok:
			return strings.TrimSpace(strings.Join(block, "\n"))
		}
		block = append(block, strings.TrimPrefix(comment, " "))
	}
	return strings.TrimSpace(strings.Join(block, "\n"))
}

// assignments are those of a statement that consists of nothing else.
func assignments(s *syntax.Stmt) ([]*syntax.Assign, bool) {
	if s.Negated || s.Background || s.Coprocess || len(s.Redirs) > 0 {
		return nil, false
	}
	switch cmd := s.Cmd.(type) {
	case *syntax.CallExpr:
		return cmd.Assigns, len(cmd.Args) == 0
	case *syntax.DeclClause:
		var named []*syntax.Assign
		for _, a := range cmd.Args {
			if a.Name != nil && !a.Naked {
				named = append(named, a)
			}
		}
		return named, len(named) > 0
	}
	return nil, false
}

// parameter is the parameter that an assignment declares.
func parameter(a *syntax.Assign) (Param, bool) {
	if a.Value == nil || a.Append || a.Index != nil || len(a.Value.Parts) != 1 {
		return Param{}, false
	}
	part := a.Value.Parts[0]
	if quoted, ok := part.(*syntax.DblQuoted); ok && len(quoted.Parts) == 1 {
		part = quoted.Parts[0]
	}
	exp, ok := part.(*syntax.ParamExp)
	if !ok || exp.Param == nil || exp.Param.Value != a.Name.Value || exp.Index != nil ||
		exp.Length || exp.Excl || exp.Slice != nil || exp.Repl != nil {
		return Param{}, false
	}
	p := Param{Name: a.Name.Value}
	if exp.Exp == nil {
		return p, true
	}
	switch exp.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		p.Value = wordText(exp.Exp.Word)
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull: // there is no default
	default:
		return Param{}, false
	}
	return p, true
}

// wordText is a word as it stands, without the quotes around the whole of it.
func wordText(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	if len(w.Parts) == 1 {
		switch q := w.Parts[0].(type) {
		case *syntax.SglQuoted:
			return q.Value
		case *syntax.DblQuoted:
			w = &syntax.Word{Parts: q.Parts}
		}
	}
	var b strings.Builder
	if err := syntax.NewPrinter().Print(&b, w); err != nil {
		return ""
	}
	return b.String()
}
