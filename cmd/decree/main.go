// Command decree records what a command changes in a tree, and takes it back.
package main

import (
	"os"

	"decree/cmd"
)

func main() { os.Exit(cmd.Main(cmd.System())) }
