package message_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"decree/message"

	"github.com/stretchr/testify/require"
)

func script(t testing.TB, text string) message.Routine {
	r, err := message.ReadRoutine("x.sh", []byte(text))
	require.NoError(t, err)
	return r
}

func TestScriptHead(t *testing.T) {
	r := script(t, `#!/usr/bin/env bash

# Develops what a message asks for.
#
#   With a second paragraph.

# Not of the description.
target_branch="${target_branch:-main}"
plain=${plain:-a b}
quoted='fixed'
set_but_empty="${set_but_empty-}"
assigned="${assigned:=x}"  # a comment
required="${required:?say which}"
bare="$bare"
braced=${braced}
nested="${nested:-$HOME/"a b"}"
single=${single:-'it is'}
here="$(cd "$(dirname "$0")" && pwd)"
list=(a "b c")
list+=(d)
set -euo pipefail
shopt -s nullglob
: "${colon:=3 4}" ${why:?say why}
export exported="${exported:-1}"
readonly fixed="${fixed:-f}"
declare -x declared="${declared:-2}"
one="${one:-1}" two="${two:-2}"; three="${three:-3}"
long="${long:-first
second}"
other="${target_branch:-main}"
upper="${upper^^}"
none="${none:+x}"
target_branch="${target_branch:-again}"

cd "$(dirname "$0")"
late="${late:-x}"
`)
	require.Equal(t, "Develops what a message asks for.\n\n  With a second paragraph.", r.Description)
	require.Equal(t, []message.Param{
		{"target_branch", "main"}, {"plain", "a b"}, {"set_but_empty", ""}, {"assigned", "x"}, {"required", ""},
		{"bare", ""}, {"braced", ""}, {"nested", `$HOME/"a b"`}, {"single", "it is"}, {"colon", "3 4"}, {"why", ""},
		{"exported", "1"}, {"fixed", "f"}, {"declared", "2"},
		{"one", "1"}, {"two", "2"}, {"three", "3"}, {"long", "first\nsecond"},
	}, r.Params)
	require.Equal(t, 35, r.HeadEnd)
	require.True(t, r.Declares("three"))
	require.False(t, r.Declares("late"))
}

// TestScriptHeadEnds at the first statement that is no assignment.
func TestScriptHeadEnds(t *testing.T) {
	const late = "\nlate=\"${late:-x}\"\n"
	for _, first := range []string{"echo hi", "set -e >f", "x=1 set -e", "cd x", ": x", ": $(x)", ": \"${x^^}\"", ": $x", "x=1 true", "x=1 >f", "x=1 &", "! x=1", "if true; then x=1; fi", "{ x=1; }",
		"(x=1)", "f() { x=1; }", "x=1 && y=2", "x=1 | y=2", "export x", "[[ a ]]", "((x=1))", "let x=1", "cat <<EOF\nEOF", "x=1; echo"} {
		r := script(t, first+late)
		require.NotZero(t, r.HeadEnd, first)
		require.False(t, r.Declares("late"), first)
	}
	for _, broken := range []string{"x=\"unfinished", "fi", "cat <<EOF\nnever", "x=$(", "x=(", "x=`"} {
		r := script(t, "a=\"${a:-1}\"\n"+broken+late)
		require.Equal(t, []message.Param{{"a", "1"}}, r.Params, broken)
	}
}

func TestScriptDescription(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"#!/bin/sh":                     "",
		"#!/bin/sh\necho":               "",
		"#!/bin/sh\n\n\n# a\n#b\n  # c": "a\nb\nc",
		"# a\r\n# b\r\nx=1\r\n":         "a\nb",
		"\xef\xbb\xbf# a\n":             "a",
		"x=1\n# late\n":                 "",
		"#\n# a\n#\n":                   "a",
	} {
		require.Equal(t, want, script(t, text).Description, "%q", text)
	}
}

const cells = `{"cells": [
 {"cell_type": "raw", "metadata": {}, "source": "raw"},
 {"cell_type": "markdown", "metadata": {}, "source": ["# Report\n", "\n", "Of a branch."]},
 {"cell_type": "code", "execution_count": 3, "metadata": {"tags": ["x", "parameters"], "keep": {"a": 1e3}}, "outputs": [],
  "source": ["import os\n", "branch = \"main\"  # which\n", "n: int = 3\n", "ratio = 0.5\n", "dry = False\n", "if True:\n", "    inner = 1\n", "n == 3\n", "hash = '#'\n", "none = None\n"]},
 {"cell_type": "code", "metadata": {"tags": ["injected-parameters"]}, "outputs": [], "source": "branch = 'old'"},
 {"cell_type": "code", "metadata": {}, "outputs": [], "source": "print(branch)"}
], "metadata": {"kernelspec": {"language": "python", "name": "python3"}, "unknown": "<kept>"}, "nbformat": 4, "nbformat_minor": 5}`

func TestNotebook(t *testing.T) {
	r, err := message.ReadRoutine("report.ipynb", []byte(cells))
	require.NoError(t, err)
	require.Equal(t, message.Routine{Name: "report", Kind: message.Notebook, Description: "# Report\n\nOf a branch.",
		Params: []message.Param{{"branch", "main"}, {"n", "3"}, {"ratio", "0.5"}, {"dry", "False"}, {"hash", "#"}, {"none", "None"}}}, r)
}

func TestNotebookInject(t *testing.T) {
	args := []message.Param{{"message_file", "/a \"b\"\\\xff\n"}, {"branch", "007"}, {"n", "12"}, {"ratio", "2"}, {"dry", "true"}, {"none", "é\x01"}}
	out, err := message.Inject("report.ipynb", []byte(cells), args)
	require.NoError(t, err)
	var nb struct {
		Cells    []map[string]any
		Metadata map[string]any
		Nbformat int
	}
	require.NoError(t, json.Unmarshal(out, &nb))
	require.Len(t, nb.Cells, 5, "the old injected cell is gone")
	injected := nb.Cells[3]
	require.Equal(t, map[string]any{"tags": []any{"injected-parameters"}}, injected["metadata"])
	require.Equal(t, "injected-parameters", injected["id"])
	require.Equal(t, []any{"# Parameters\n", `message_file = "/a \"b\"\\\udcff\n"` + "\n", `branch = "007"` + "\n", "n = 12\n", "ratio = 2\n", "dry = True\n", `none = "é\x01"`}, injected["source"])
	require.Equal(t, "print(branch)", nb.Cells[4]["source"])
	require.Equal(t, "<kept>", nb.Metadata["unknown"])
	require.Contains(t, string(out), `1e3`, "numbers stay as they are written")
	require.Contains(t, string(out), "<kept>")

	// Text that is none of the declared kind stays text.
	out, err = message.Inject("report.ipynb", []byte(cells), []message.Param{{"n", "012"}, {"ratio", "1e999x"}, {"dry", "maybe"}})
	require.NoError(t, err)
	require.Contains(t, string(out), `n = \"012\"`)
	require.Contains(t, string(out), `ratio = \"1e999x\"`)
	require.Contains(t, string(out), `dry = \"maybe\"`)

	// Without a parameters cell nothing is set; other languages are refused where there is one.
	plain := strings.Replace(cells, `"parameters"`, `"other"`, 1)
	out, err = message.Inject("report.ipynb", []byte(plain), args)
	require.NoError(t, err)
	require.Equal(t, plain, string(out))
	_, err = message.Inject("report.ipynb", []byte(strings.Replace(cells, `"language": "python"`, `"language": "R"`, 1)), args)
	require.EqualError(t, err, "report.ipynb: a notebook in R; parameters can be set only in Python notebooks")
}

func TestNotebookRefuses(t *testing.T) {
	for text, reason := range map[string]string{
		"":                            "n.ipynb: line 1: no JSON: unexpected end of JSON input",
		"{\n \"cells\": [,]}":         "n.ipynb: line 2: no JSON: invalid character ',' looking for beginning of value",
		"[]":                          "n.ipynb: no notebook: the whole is of another kind",
		`{"nbformat": 3}`:             "n.ipynb: not a notebook of format 4 (nbformat is 3); 'jupyter nbconvert --to notebook' makes it one",
		`{"nbformat": 4}`:             "n.ipynb: a notebook without cells",
		`{"nbformat": 4, "cells": 1}`: "n.ipynb: no notebook: cells is of another kind",
		`{"nbformat": 4, "cells": [{"source": 1}]}`:   "n.ipynb: cell 1: its source is not text",
		`{"nbformat": 4, "cells": [{"source": [1]}]}`: "n.ipynb: cell 1: its source is not a list of lines",
	} {
		r, err := message.ReadRoutine("n.ipynb", []byte(text))
		require.EqualError(t, err, reason)
		require.Equal(t, "n", r.Name)
	}
}

// files is a directory of routines.
type files map[string]string

func (f files) Path() string { return "routines" }

func (f files) Names() ([]string, error) {
	var out []string
	for name := range f {
		out = append(out, name)
	}
	return out, nil
}

func (f files) Read(name string) ([]byte, error) {
	text, ok := f[name]
	if !ok {
		return nil, nil
	}
	if text == "unreadable" {
		return nil, errors.New("permission denied")
	}
	return []byte(text), nil
}

func TestListAndFind(t *testing.T) {
	own := files{"b.sh": "# b\n", "a.ipynb": cells, "c.sh": "unreadable", "c.ipynb": cells, "README.md": "", ".x.sh": "", "-f.sh": "", "d.ipynb": "{", "e.sh": ""}
	shared := files{"b.ipynb": cells, "z.sh": "# z\n", "c.sh": "# c\n"}
	list, err := message.List(own, shared)
	require.NoError(t, err)
	var names []string
	for _, f := range list {
		names = append(names, f.File)
	}
	require.Equal(t, []string{"a.ipynb", "b.sh", "c.sh", "d.ipynb", "e.sh", "z.sh"}, names)
	require.EqualError(t, list[2].Err, "permission denied")
	require.Error(t, list[3].Err)

	f, err := message.Find("b", own, shared)
	require.NoError(t, err)
	require.Equal(t, "b", f.Description)
	f, err = message.Find("z", own, shared)
	require.NoError(t, err)
	require.Equal(t, "z.sh", f.File)
	_, err = message.Find("c", own, shared)
	require.EqualError(t, err, "permission denied")
	_, err = message.Find("nosuch", own, shared)
	require.EqualError(t, err, `no routine is called "nosuch"; there are: a, b, c, d, e, z`)
	_, err = message.Find("nosuch")
	require.EqualError(t, err, `no routine is called "nosuch"; there are none`)
	for _, name := range []string{"", "..", ".x", "-f", "a/b", `a\b`, "a\nb", strings.Repeat("x", 201)} {
		_, err = message.Find(name, own)
		require.ErrorAs(t, err, new(*message.Error), name)
	}
}

func TestArguments(t *testing.T) {
	r := script(t, "branch=\"${branch:-main}\"\nseq=\"${seq:-0}\"\n")
	m, _ := complete(t, "a-1.md", "---\ninput_file: specs/x.spec.md\nbranch: next\nother: x\nmessage_id: forged\n---\n", defaults)
	require.Equal(t, []message.Param{
		{"message_file", "/r/.decree/inbox/a-1.md"}, {"message_id", "a-1"}, {"message_dir", "/r/.decree/runs/x"},
		{"spec_file", "specs/x.spec.md"}, {"input_file", "specs/x.spec.md"}, {"chain", "a"}, {"seq", "1"}, {"branch", "next"},
	}, message.Arguments(r, m, message.Place{File: "/r/.decree/inbox/a-1.md", Dir: "/r/.decree/runs/x"}))
	m, _ = complete(t, "m.md", "---\ninput_file: notes.txt\n---\n", defaults)
	args := message.Arguments(r, m, message.Place{})
	require.Equal(t, []message.Param{{"spec_file", ""}, {"input_file", "notes.txt"}}, args[3:5])
	require.Len(t, args, 7)
}

// FuzzScript: whatever a script is, its head is read, and each parameter can be a variable.
func FuzzScript(f *testing.F) {
	for _, text := range []string{
		"#!/bin/bash\n# d\na=\"${a:-1}\"\nset -e\n", "a=${a:='x y'} b=$b\nexport c=\"${c-$(d)}\"\n", "cat <<EOF\n", "a=((\n", "a=`b`\n$(", "declare -A a=([x]=${a:-1})\n", "a[1]=${a}\n", "x=${x:-${y:-\"$(echo '}')\"}}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := message.ReadRoutine("x.sh", data)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Params {
			if p.Name == "" || strings.ContainsAny(p.Name, "= \n\"'$") {
				t.Fatalf("%q of %q is no variable", p.Name, data)
			}
		}
	})
}

// FuzzNotebook: what is read can be injected into, is a notebook with the same
// declarations after that, and is injected into again with the same result.
func FuzzNotebook(f *testing.F) {
	real, err := os.ReadFile("testdata/papermill.ipynb")
	require.NoError(f, err)
	for _, text := range []string{cells, string(real), `{"nbformat":4,"cells":[]}`, `{"nbformat":4,"cells":[{"cell_type":"code","metadata":{"tags":["parameters","injected-parameters"]},"source":"a=1"}]}`} {
		f.Add([]byte(text))
	}
	args := []message.Param{{"a", "1"}, {"branch", "x\ny"}}
	f.Fuzz(func(t *testing.T, data []byte) {
		before, err := message.ReadRoutine("n.ipynb", data)
		if err != nil {
			return
		}
		out, err := message.Inject("n.ipynb", data, args)
		if err != nil {
			return
		}
		after, err := message.ReadRoutine("n.ipynb", out)
		if err != nil || !slices.Equal(before.Params, after.Params) {
			t.Fatalf("injecting made %q of %q: %v", out, data, err)
		}
		again, err := message.Inject("n.ipynb", out, args)
		if err != nil || string(again) != string(out) {
			t.Fatalf("injecting twice made %q of %q: %v", again, out, err)
		}
	})
}
