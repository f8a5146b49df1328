package history

import "decree/disk"

func statRun(runs disk.Dir, id string) (disk.Info, error) { return statRunByHandle(runs, id) }
