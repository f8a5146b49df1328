package queue

import "decree/project"

// RefuseInLayer refuses what does something with messages where the project is seen in the layer of
// an isolated run. They belong to the project outside, which would not learn of it: what is done there
// goes with the layer, and the project would do the same messages again.
func RefuseInLayer(p *project.Project) error {
	if !p.InLayer {
		return nil
	}
	return &project.Error{Kind: project.Refused, State: project.Unchanged,
		Msg:    "this command is a part of an isolated run, and the messages that it sees belong to the project outside",
		Advice: "what waits in the inbox is for 'decree process' outside of the run; 'decree inbox' there cancels, changes and retries"}
}
