// Command tally counts the words of its input and prints the most frequent ones.
package main

import (
	"flag"
	"fmt"
	"os"

	"example.com/tally/words"
)

func main() {
	top := flag.Int("top", 10, "how many words to print")
	flag.Parse()
	t, err := words.Tally(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
	for _, w := range t.Top(*top) {
		fmt.Printf("%7d %s\n", w.Count, w.Text)
	}
}
