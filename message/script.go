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
// comments, blank lines, assignments, "set ..." and "shopt ..." up to the first other
// statement. The description is the first block of comment lines, without the "#!" line.
// A parameter is an assignment that takes its own name from the environment:
//
//	name="${name:-default}"    also ${name-default}, ${name:=default}, ${name:?why}, $name
//	: "${name:=default}"       also ${name=default}, ${name:-default}, ${name:?why}
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

// comments are the texts of the comment lines of a script's head, which ends before line end;
// 0: nowhere.
func comments(data []byte, end int) (texts []string) {
	n := 0
	for line := range strings.Lines(string(data[:min(len(data), maxHead)])) {
		if n++; n == end {
			break
		}
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "#"); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

func (r *Routine) readStatement(s *syntax.Stmt, err error) {
	if err != nil {
		r.HeadEnd = 1
		if at, ok := errors.AsType[syntax.ParseError](err); ok {
			r.HeadEnd = int(at.Pos.Line())
		}
		return
	}
	params, ok := ofHead(s)
	if !ok {
		r.HeadEnd = int(s.Pos().Line())
		return
	}
	for _, p := range params {
		if !r.Declares(p.Name) {
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

// ofHead are the parameters that a statement declares; ok says whether it can stand in
// a head.
func ofHead(s *syntax.Stmt) (params []Param, ok bool) {
	if s.Negated || s.Background || s.Coprocess || len(s.Redirs) > 0 {
		return nil, false
	}
	var assigns []*syntax.Assign
	switch cmd := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(cmd.Args) > 0 {
			return ofCall(cmd)
		}
		assigns = cmd.Assigns
	case *syntax.DeclClause:
		for _, a := range cmd.Args {
			if a.Name != nil && !a.Naked {
				assigns = append(assigns, a)
			}
		}
		if len(assigns) == 0 {
			return nil, false
		}
	default:
		return nil, false
	}
	for _, a := range assigns {
		if p, ok := parameter(a); ok {
			params = append(params, p)
		}
	}
	return params, true
}

// ofCall is ofHead for set, shopt and the colon, whose words are expanded and nothing
// else.
func ofCall(cmd *syntax.CallExpr) (params []Param, ok bool) {
	if len(cmd.Assigns) > 0 {
		return nil, false
	}
	switch cmd.Args[0].Lit() {
	case "set", "shopt":
		return nil, true
	case ":":
	default:
		return nil, false
	}
	for _, word := range cmd.Args[1:] {
		exp := expansion(word)
		if exp == nil || exp.Exp == nil {
			return nil, false
		}
		p, ok := declared(exp)
		if !ok {
			return nil, false
		}
		params = append(params, p)
	}
	return params, true
}

// parameter is the parameter that an assignment declares.
func parameter(a *syntax.Assign) (Param, bool) {
	if a.Value == nil || a.Append || a.Index != nil {
		return Param{}, false
	}
	exp := expansion(a.Value)
	if exp == nil || exp.Param.Value != a.Name.Value {
		return Param{}, false
	}
	return declared(exp)
}

// expansion is the one parameter expansion that a word consists of, quoted or not; nil
// where it is something else.
func expansion(w *syntax.Word) *syntax.ParamExp {
	if len(w.Parts) != 1 {
		return nil
	}
	part := w.Parts[0]
	if quoted, ok := part.(*syntax.DblQuoted); ok && len(quoted.Parts) == 1 {
		part = quoted.Parts[0]
	}
	exp, ok := part.(*syntax.ParamExp)
	if !ok || exp.Param == nil {
		return nil
	}
	return exp
}

// declared is the parameter that an expansion takes from the environment.
func declared(exp *syntax.ParamExp) (Param, bool) {
	if exp.Index != nil || exp.Length || exp.Excl || exp.Slice != nil || exp.Repl != nil {
		return Param{}, false
	}
	p := Param{Name: exp.Param.Value}
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
