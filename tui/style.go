package tui

import (
	"image/color"

	"charm.land/lipgloss/v2"

	"decree/timeline"
)

// styles are how things look, on a dark or a light background. What colours say is also said by a
// sign or a word: without colours nothing is lost.
type styles struct {
	title, dim, key, strong       lipgloss.Style
	good, bad, waiting            lipgloss.Style
	addedGround, removedGround    lipgloss.Style
	added, removed, hunk, file    lipgloss.Style
	selected, selectedElsewhere   lipgloss.Style
	badge                         map[string]lipgloss.Style
	token                         map[string]lipgloss.Style
	banner, bannerBad, rule, mark lipgloss.Style
}

func newStyles(dark bool) styles {
	pick := lipgloss.LightDark(dark)
	colour := func(light, dark string) color.Color { return pick(lipgloss.Color(light), lipgloss.Color(dark)) }
	in := func(light, dark string) lipgloss.Style { return lipgloss.NewStyle().Foreground(colour(light, dark)) }
	blue, green, red, amber := in("#1F5FBF", "#7AA2F7"), in("#2B7A3D", "#8FC98F"), in("#B3352F", "#F08A84"), in("#8A5A00", "#E0B36A")
	grey, violet, teal := in("#5F6773", "#8B93A5"), in("#7A3E9D", "#C49BE8"), in("#0F7173", "#79C7C5")
	s := styles{
		title: blue.Bold(true), dim: grey, key: blue, strong: lipgloss.NewStyle().Bold(true),
		good: green, bad: red, waiting: amber,
		addedGround: green, removedGround: red,
		added: green.Bold(true), removed: red.Bold(true), hunk: teal, file: lipgloss.NewStyle().Bold(true),
		selected:          lipgloss.NewStyle().Background(colour("#D5E2F7", "#2C3A55")).Bold(true),
		selectedElsewhere: lipgloss.NewStyle().Background(colour("#E8ECF2", "#242A36")),
		banner:            green.Bold(true), bannerBad: red.Bold(true), rule: in("#B8BFCA", "#3B4252"), mark: amber.Bold(true),
		badge: map[string]lipgloss.Style{
			"Auto": grey, "Manual": teal, "Run": blue, "Turn": violet, "Session": violet, "Race": amber,
			"Publish": green, "Restore": amber, "Revert": amber, "Apply": green, "Outside": grey, "Damaged": red,
		},
		token: map[string]lipgloss.Style{"k": violet, "t": teal, "f": blue, "s": green, "n": amber, "c": grey.Italic(true), "m": amber},
	}
	return s
}

// verdict is what a judge said.
func (s *styles) verdict(judged string) string {
	if judged == "bad" {
		return s.bad.Render("judged bad")
	}
	return s.good.Render("judged " + judged)
}

func (s *styles) tone(t timeline.Tone) lipgloss.Style {
	switch t {
	case timeline.Good:
		return s.good
	case timeline.Bad:
		return s.bad
	case timeline.Waiting:
		return s.waiting
	}
	return s.dim
}
