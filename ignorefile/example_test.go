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

func ExampleExplain() {
	files := map[string]string{"": "out/\n", "src": "*.o\n"}
	enter := func(parent *ignorefile.Rules, dir string) (*ignorefile.Rules, error) {
		f, err := ignorefile.Parse(dir+"/.gitignore", []byte(files[dir]))
		return parent.Enter(dir, f), err
	}
	for _, path := range []string{"out/deep/a.c", "src/a.o"} {
		v, about, _ := ignorefile.Explain(path, false, enter)
		fmt.Printf("%s: %q excludes %s\n", path, v.Rule.Text(), about)
	}
	// Output:
	// out/deep/a.c: "out/" excludes out
	// src/a.o: "*.o" excludes src/a.o
}
