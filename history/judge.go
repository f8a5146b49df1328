package history

import "decree/jsonread"

// JudgeLog is the file of a record that has what its judge printed.
const JudgeLog = "judge.log"

// Judgement is what a race's judge said of a candidate, which has seen its work.
type Judgement struct {
	Command  string `json:"command"` // a line for sh
	ExitCode int    `json:"exit_code"`
}

// Good says whether the candidate has passed.
func (j *Judgement) Good() bool { return j != nil && j.ExitCode == 0 }

func (j *Judgement) append(dst []byte) []byte {
	w := spaced(dst)
	w.text("command", j.Command)
	w.number("exit_code", int64(j.ExitCode))
	return w.end()
}

func judgementOf(v *jsonread.Value) *Judgement {
	j := &Judgement{}
	v.Members(func(name string, m *jsonread.Value) {
		switch name {
		case "command":
			j.Command = m.Text()
		case "exit_code":
			j.ExitCode = int(m.Int())
		}
	})
	return j
}
