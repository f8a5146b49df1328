package history

import "decree/disk"

func statRunByHandle(runs disk.Dir, id string) (disk.Info, error) {
	d, err := runs.OpenDir(id)
	if err != nil {
		return disk.Info{}, err
	}
	defer d.Close()
	return d.Stat(runJSON)
}
