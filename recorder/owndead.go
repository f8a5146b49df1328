package recorder

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"

	"decree/disk"
	"decree/project"
)

// A message of the inbox that is gone, nobody knows by whose hand, is neither queued again,
// since its author may not want it any more, nor lost: it lies with those that failed, where
// 'decree inbox retry' finds it.
const (
	messageEnd = ".md"
	reasonEnd  = ".error.txt"
)

// waited says whether a file was a message that waited.
func (f ownFile) waited() bool {
	name, in := strings.CutPrefix(f.Path, project.InboxDir+"/")
	return in && !f.Dir && f.Target == "" && !strings.Contains(name, "/") && !strings.HasPrefix(name, ".") && strings.HasSuffix(name, messageEnd)
}

// bringDead puts messages among those that failed, with the reason beside each, and returns them as they lie there.
func (r *Recorder) bringDead(messages []ownFile, reason string) ([]ownFile, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	dir, _, err := r.ownDir(project.DeadDir + "/any")
	if err != nil {
		return nil, fmt.Errorf(".decree/%s: %w", project.DeadDir, err)
	}
	defer dir.Close()
	for i := range messages {
		f := &messages[i]
		name := path.Base(f.Path)
		for n := 2; !free(dir, name) || !free(dir, reasonOf(name)); n++ {
			name = besideName(path.Base(f.Path), n)
		}
		f.Path, f.beside = path.Join(project.DeadDir, name), false
		err := project.ReplaceFile(dir, reasonOf(name), []byte(reason+"\n"), 0o644, true)
		if err != nil && !errors.Is(err, syscall.ENAMETOOLONG) { // the message is worth more than its reason
			return nil, fmt.Errorf(".decree/%s: %w", f.Path, err)
		}
	}
	return r.bringOwn(messages)
}

func reasonOf(name string) string { return strings.TrimSuffix(name, messageEnd) + reasonEnd }

func free(dir disk.Dir, name string) bool {
	_, err := dir.Stat(name)
	return isMissing(err) || errors.Is(err, syscall.ENAMETOOLONG)
}
