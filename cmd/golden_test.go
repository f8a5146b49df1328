package cmd

import "flag"

var update = flag.Bool("update", false, "write golden files anew")
