package backup

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/project"
)

func noon(day string) datedGeneration {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err)
	}
	t = t.Add(12 * time.Hour)
	return datedGeneration{NameOf(t), t}
}

func daily(from string, n int) (out []datedGeneration) {
	t := noon(from).Time
	for i := range n {
		at := t.AddDate(0, 0, i)
		out = append(out, datedGeneration{NameOf(at), at})
	}
	return out
}

func kept(verdicts []verdict) (days []string) {
	for _, v := range verdicts {
		if len(v.KeptBy) > 0 {
			days = append(days, v.Time.Format(time.DateOnly))
		}
	}
	return days
}

func TestRotation(t *testing.T) {
	var fridays, fifteenths []datedGeneration
	for i := range 8 {
		at := noon("2026-01-02").Time.AddDate(0, 0, 7*i)
		fridays = append(fridays, datedGeneration{NameOf(at), at})
	}
	var months []string
	for i := range 12 {
		at := noon("2025-03-15").Time.AddDate(0, i, 0)
		fifteenths = append(fifteenths, datedGeneration{NameOf(at), at})
		months = append(months, at.Format(time.DateOnly))
	}
	before := noon("2026-02-28")
	before.Name = preRestore + before.Name
	morning := datedGeneration{"2026-02-27T080000Z", noon("2026-02-27").Time.Add(-4 * time.Hour)}
	for _, c := range []struct {
		name        string
		generations []datedGeneration
		keep        project.BackupRetention
		want        []string
	}{
		{"dailies", daily("2026-02-21", 7), project.BackupRetention{Daily: 5}, []string{"2026-02-23", "2026-02-24", "2026-02-25", "2026-02-26", "2026-02-27"}},
		{"Fridays", fridays, project.BackupRetention{Weekly: 4}, []string{"2026-01-30", "2026-02-06", "2026-02-13", "2026-02-20"}},
		{"months for ever", fifteenths, project.BackupRetention{Monthly: -1}, months},
		{"what a restore has replaced", []datedGeneration{before, noon("2026-02-27")}, project.BackupRetention{}, []string{"2026-02-27", "2026-02-28"}},
		{"sixty dailies", daily("2026-01-01", 60), project.BackupRetention{Daily: 5, Weekly: 4, Monthly: -1}, []string{"2026-01-01", "2026-02-01", "2026-02-02", "2026-02-09", "2026-02-16", "2026-02-23", "2026-02-25", "2026-02-26", "2026-02-27", "2026-02-28", "2026-03-01"}},
		{"weeks over the turn of the year", daily("2025-12-27", 10), project.BackupRetention{Weekly: 2}, []string{"2025-12-29", "2026-01-05"}},
		{"nothing", nil, project.BackupRetention{Daily: 5}, nil},
		{"several a day count once, the newest", []datedGeneration{noon("2026-02-26"), noon("2026-02-27"), morning}, project.BackupRetention{Daily: 2}, []string{"2026-02-26", "2026-02-27"}},
		{"no rule keeps the newest", daily("2026-02-21", 7), project.BackupRetention{}, []string{"2026-02-27"}},
		{"the last whatever their days", []datedGeneration{noon("2026-02-26"), noon("2026-02-27"), morning}, project.BackupRetention{Last: 2}, []string{"2026-02-27", "2026-02-27"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, kept(verdicts(c.generations, c.keep)))
			slices.Reverse(c.generations)
			require.Equal(t, c.want, kept(verdicts(c.generations, c.keep)), "the order in which they come is none")
		})
	}
}
