package web

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"decree/page"
	"decree/recorder"
	"decree/view"
)

// health is the page of how the project is. All of its parts are looked at anew, which takes a while on
// a long history, so they are shown one after the other as they come.
func (s *Server) health(w http.ResponseWriter, r *http.Request, rec *recorder.Reader) {
	f := s.frame(r, "Health", "health")
	if !s.begin(w, http.StatusOK, "health-begin", f, nil) {
		return
	}
	for _, part := range []func(context.Context, io.Writer, *recorder.Reader){s.spacePart, s.backupPart, s.auditPart, s.doctorPart} {
		part(r.Context(), w, rec)
		_ = http.NewResponseController(w).Flush() // a recorder of a test has nobody who waits
	}
	s.end(w, "end", f, nil)
}

// spacePart shows where the space went, and what goes next.
func (s *Server) spacePart(_ context.Context, w io.Writer, rec *recorder.Reader) {
	heading(w, "space", "Space")
	u, err := rec.Usage()
	if err != nil {
		s.say(w, "failure", "It cannot be said: "+err.Error())
		return
	}
	facts := []page.Fact{
		{Name: "Store", Value: page.Text(view.Size(u.Store) + " in " + view.ShownPath(rec.Project().StorePath))},
		{Name: "Copies", Value: page.Text(view.Size(u.Runs) + " in .decree/runs")},
	}
	if u.Layers > 0 {
		facts = append(facts, page.Fact{Name: "Layers", Value: page.Text(view.Size(u.Layers) + " of isolated runs")})
	}
	if u.Unneeded > 0 {
		facts = append(facts, page.Fact{Name: "Not needed", Value: page.Text("about " + view.Size(u.Unneeded) + ": 'decree gc' frees it")})
	}
	if most := rec.Project().Config.MaxStore; most > 0 {
		facts = append(facts, page.Fact{Name: "At most", Value: page.Text(view.Size(most) + ", by max_store")})
	}
	fmt.Fprintln(w, page.FactList(facts))
	fmt.Fprintln(w, `<div class="plots">`)
	for _, p := range page.Plots(u, rec.Project().Config.MaxStore, s.clock()) {
		fmt.Fprintln(w, p.Draw(s.Location))
	}
	fmt.Fprintln(w, `</div>`)
	heading(w, "retention", "What goes next")
	if u.Prune == nil {
		s.say(w, "soft", "It is not known.")
		return
	}
	gone := u.Prune.Gone()
	if len(gone) == 0 {
		s.say(w, "soft", "Nothing: all records are kept by the rules of today.")
		return
	}
	s.say(w, "", fmt.Sprintf("A prune would remove %s, and free about %s.", view.Count(len(gone), "record"), view.Size(u.Prune.Freed)))
	fmt.Fprint(w, "<ul>")
	for _, v := range gone[:min(len(gone), mostRelated)] {
		fmt.Fprintf(w, "<li><a href=\"%s\">%s</a></li>", attribute(s.recordLink(v.ID)), page.Text(v.ID))
	}
	fmt.Fprint(w, "</ul>\n")
}

// doctorPart shows doctor's checks.
func (s *Server) doctorPart(ctx context.Context, w io.Writer, rec *recorder.Reader) {
	heading(w, "doctor", "Doctor")
	checks, err := rec.CheckUp(ctx)
	if err != nil {
		s.say(w, "failure", "It cannot be said: "+err.Error())
		return
	}
	fmt.Fprint(w, "<table class=\"list\"><thead><tr><th scope=\"col\">Result</th><th scope=\"col\">What</th><th scope=\"col\">Found</th></tr></thead><tbody>\n")
	tones := map[recorder.Level]string{recorder.OK: "good", recorder.Warning: "waiting", recorder.Error: "bad"}
	for _, c := range checks {
		fmt.Fprintf(w, "<tr><td class=\"%s\">%s</td><td>%s</td><td>%s", tones[c.Level], page.Text(string(c.Level)), page.Text(c.Name), page.Text(view.OneLine(c.Text)))
		if c.Hint != "" {
			fmt.Fprintf(w, " <span class=\"soft\">%s</span>", page.Text(view.OneLine(c.Hint)))
		}
		fmt.Fprint(w, "</td></tr>\n")
	}
	fmt.Fprint(w, "</tbody></table>\n")
}

// auditPart says whether somebody has rewritten what was done.
func (s *Server) auditPart(_ context.Context, w io.Writer, rec *recorder.Reader) {
	heading(w, "audit", "Audit")
	report, err := rec.History().ReadAudit(nil)
	if err == nil {
		err = report.Err()
	}
	if err != nil {
		s.say(w, "failure", "The log of operations does not hold: "+err.Error())
		return
	}
	s.say(w, "proof", view.Count(report.Lines, "operation")+", each chained to the one before; nobody has rewritten them")
}

// backupPart shows the newest backup and its proof.
func (s *Server) backupPart(ctx context.Context, w io.Writer, _ *recorder.Reader) {
	heading(w, "backup", "Backup")
	b, err := s.Backup(ctx)
	if err != nil {
		s.say(w, "soft", err.Error())
		return
	}
	switch p := b.Proof; {
	case b.Last == nil: // nothing can be proven
	case p == nil:
		s.say(w, "warning", "Nothing was proven yet.")
	case p.OK:
		fmt.Fprintf(w, "<p class=\"proof\">%s, %s</p>\n", page.Text(p.Text), s.clock().Time(p.At))
	default:
		fmt.Fprintf(w, "<p class=\"proof bad\">%s, %s</p>\n", page.Text(p.Text), s.clock().Time(p.At))
	}
	if b.Last != nil { // else that is the problem
		fmt.Fprintf(w, "<p>The newest is %s, %s, in <code>%s</code>; %s, %s.</p>\n", page.Text(b.Last.Generation), s.clock().Time(b.Last.Timestamp), page.Text(view.OneLine(b.Target)),
			page.Text(view.Count(b.Generations, "generation")), page.Text(view.Size(b.Bytes)))
	}
	for _, p := range b.Problems {
		s.say(w, "warning", p)
	}
}
