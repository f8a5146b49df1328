package page

import (
	"embed"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/chroma/v2"

	"decree/tree"
)

// Class says what a token is, in one letter, which is its class in the stylesheet; "" is plain.
type Class string

// The classes.
const (
	Keyword Class = "k"
	Type    Class = "t"
	Name    Class = "f" // what is declared or called
	String  Class = "s"
	Number  Class = "n" // and other constants
	Comment Class = "c"
	Meta    Class = "m" // a directive, decorator or tag
)

// Token is a piece of a line.
type Token struct {
	Class Class
	Text  string
}

// The bounds of colours: what goes beyond them is plain. A lexer of regular expressions can take
// long over a text that was made for it.
const (
	longestLine  = 1000             // bytes
	largestBlock = 256 << 10        // bytes that are looked at together
	longestTime  = time.Second      // for one block, and
	allTime      = 10 * time.Second // for all of a Colours
)

// Colours finds the tokens of lines. It is for one goroutine.
type Colours struct {
	spent time.Duration
}

// Tokens are the tokens of lines that follow each other in a file of that name, line by
// line; nil where they stay plain. Joined they are the lines again.
func (c *Colours) Tokens(name tree.Path, lines []string) [][]Token {
	lexer := lexerOf(name)
	if lexer == nil || c.spent > allTime || !colourable(lines) {
		return nil
	}
	begin := time.Now()
	defer func() { c.spent += time.Since(begin) }()
	return tokenise(lexer, lines, begin.Add(longestTime))
}

func colourable(lines []string) bool {
	size := 0
	for _, l := range lines {
		if size += len(l) + 1; len(l) > longestLine || size > largestBlock {
			return false
		}
	}
	return true
}

// tokenise is nil where the lexer gives up, or gives other bytes than it was given.
func tokenise(lexer chroma.Lexer, lines []string, until time.Time) (out [][]Token) {
	defer func() {
		if recover() != nil { // the library's rules panic where one of them is wrong
			out = nil
		}
	}()
	it, err := lexer.Tokenise(&chroma.TokeniseOptions{State: "root"}, strings.Join(lines, "\n")+"\n")
	if err != nil {
		return nil
	}
	out = make([][]Token, 1, len(lines)+1)
	for token := it(); token != chroma.EOF; token = it() {
		if time.Now().After(until) {
			return nil
		}
		class := classOf(token.Type)
		for i, part := range strings.Split(token.Value, "\n") {
			if i > 0 {
				out = append(out, nil)
			}
			out[len(out)-1] = appendToken(out[len(out)-1], class, part)
		}
	}
	if len(out) < len(lines) {
		return nil
	}
	for i, l := range lines {
		if !spells(out[i], l) {
			return nil
		}
	}
	return out[:len(lines)]
}

func appendToken(line []Token, class Class, text string) []Token {
	if text == "" {
		return line
	}
	if n := len(line); n > 0 && (line[n-1].Class == class || strings.TrimSpace(text) == "") {
		line[n-1].Text += text
		return line
	}
	return append(line, Token{class, text})
}

func spells(tokens []Token, line string) bool {
	for _, t := range tokens {
		rest, ok := strings.CutPrefix(line, t.Text)
		if !ok {
			return false
		}
		line = rest
	}
	return line == ""
}

func classOf(t chroma.TokenType) Class {
	switch t {
	case chroma.KeywordType, chroma.NameBuiltin, chroma.NameBuiltinPseudo:
		return Type
	case chroma.KeywordConstant:
		return Number
	case chroma.NameFunction, chroma.NameFunctionMagic, chroma.NameClass, chroma.NameAttribute, chroma.NameProperty:
		return Name
	case chroma.NameTag:
		return Keyword
	case chroma.NameDecorator, chroma.CommentPreproc, chroma.CommentPreprocFile, chroma.CommentHashbang:
		return Meta
	case chroma.OperatorWord:
		return Keyword
	}
	switch {
	case t.InCategory(chroma.Keyword):
		return Keyword
	case t.InCategory(chroma.Comment):
		return Comment
	case t.InSubCategory(chroma.LiteralString):
		return String
	case t.InSubCategory(chroma.LiteralNumber), t == chroma.Literal, t == chroma.LiteralDate:
		return Number
	}
	return ""
}

// The lexers are the library's own definitions of the usual languages. Its package of all of
// them reads each one as a process starts, which would cost every command 13 ms.
//
//go:embed lexers/*.xml
var lexerFiles embed.FS

// registry reads the lexers when the first one is needed.
var registry = sync.OnceValue(func() *chroma.LexerRegistry {
	all := chroma.NewLexerRegistry()
	all.Register(goLexer())
	list, err := lexerFiles.ReadDir("lexers")
	if err != nil {
		panic(err)
	}
	for _, f := range list {
		all.Register(chroma.MustNewXMLLexer(lexerFiles, path.Join("lexers", f.Name())))
	}
	return all
})

// lexerOf goes by the file's name alone: a guess from contents would read them all.
func lexerOf(name tree.Path) chroma.Lexer {
	base := path.Base(string(name))
	if lexer := registry().Match(base); lexer != nil {
		return lexer
	}
	return nil
}

// goLexer is the library's lexer of Go, which it has as code and not as a file.
func goLexer() chroma.Lexer {
	return chroma.MustNewLexer(&chroma.Config{Name: "Go", Filenames: []string{"*.go", "go.mod"}}, func() chroma.Rules {
		return chroma.Rules{"root": {
			{Pattern: `\s+`, Type: chroma.TextWhitespace},
			{Pattern: `//[^\n]*`, Type: chroma.CommentSingle},
			{Pattern: `/[*](.|\n)*?[*]/`, Type: chroma.CommentMultiline},
			{Pattern: `(import|package|var|func|struct|map|chan|type|interface|const|break|default|select|case|defer|go|else|goto|switch|fallthrough|if|range|continue|for|return)\b`, Type: chroma.Keyword},
			{Pattern: `(true|false|iota|nil)\b`, Type: chroma.KeywordConstant},
			{Pattern: `(u?int(8|16|32|64)?|float(32|64)|complex(64|128)|byte|rune|string|bool|error|uintptr|any)\b`, Type: chroma.KeywordType},
			{Pattern: `(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|\d[\d_]*(\.[\d_]*)?([eE][+\-]?\d+)?|\.\d+)i?`, Type: chroma.LiteralNumber},
			{Pattern: "`[^`]*`|\"(\\\\.|[^\"\\\\\\n])*\"|'(\\\\['\"\\\\abfnrtv]|\\\\x[0-9a-fA-F]{2}|\\\\[0-7]{1,3}|\\\\u[0-9a-fA-F]{4}|\\\\U[0-9a-fA-F]{8}|[^\\\\])'", Type: chroma.LiteralString},
			{Pattern: `[\p{L}_][\p{L}\p{N}_]*(?=\()`, Type: chroma.NameFunction},
			{Pattern: `[\p{L}_][\p{L}\p{N}_]*`, Type: chroma.NameOther},
			{Pattern: `.`, Type: chroma.Punctuation},
		}}
	})
}
