package ignorefile_test

import (
	"fmt"

	"decree/ignorefile"
)

func ExampleRules_Match() {
	top, _ := ignorefile.Parse(".gitignore", []byte("*.log\n/build/\n"))
	sub, _ := ignorefile.Parse("src/.gitignore", []byte("!keep.log\n"))

	var none *ignorefile.Rules
	root := none.Enter("", top)
	src := root.Enter("src", sub)
	for _, path := range []string{"src/a.log", "src/keep.log", "src/a.go"} {
		v := src.Match(path, false)
		fmt.Print(path, " ignored: ", v.Ignored)
		if v.Rule != nil {
			fmt.Printf(", by %s:%d: %s", v.Rule.Source(), v.Rule.Line(), v.Rule.Text())
		}
		fmt.Println()
	}
	// Output:
	// src/a.log ignored: true, by .gitignore:1: *.log
	// src/keep.log ignored: false, by src/.gitignore:1: !keep.log
	// src/a.go ignored: false
}
