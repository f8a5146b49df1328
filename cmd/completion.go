package cmd

import (
	"context"
	"embed"
	"io"

	"github.com/urfave/cli/v2"
)

func (s *session) completionVerb() verb {
	return verb{
		name: "completion", category: keepCategory, args: "SHELL", words: shellWords, most: anyWords,
		usage: "print a completion script for bash, zsh or fish",
		about: `Prints a script that makes SHELL complete decree's commands, flags, records, labels, routines, messages and paths, also paths that are gone but which the record changed.`,
		examples: []example{
			{"source <(decree completion bash)", "in ~/.bashrc"},
			{"decree completion zsh > ~/.zfunc/_decree", "with ~/.zfunc in $fpath"},
			{"decree completion fish > ~/.config/fish/completions/decree.fish", "for fish"},
		},
		flags:  []cli.Flag{s.quietFlag()},
		action: s.completion,
	}
}

// completions are the scripts. They know nothing of decree's commands: they ask "decree
// __complete" what the word at the cursor can become, and show it as their shell does.
//
//go:embed completions
var completions embed.FS

func (s *session) completion(context.Context) error {
	words := s.words()
	if len(words) != 1 {
		return usagef("one SHELL is needed").Hintf("it is bash, zsh or fish: 'decree completion bash'")
	}
	script, err := completions.ReadFile("completions/decree." + words[0])
	if err != nil {
		return usagef("%s: no completion for this shell", quoteWord(words[0])).Hintf("choose bash, zsh or fish")
	}
	return s.print(func(w io.Writer) error {
		_, err := w.Write(script)
		return err
	})
}
