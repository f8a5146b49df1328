package backup

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/project"
)

// TestRollingRotation makes backups for three years by a simulated clock, with outages, with days
// that have several backups, restores, and times in which nothing may be pruned. After each rotation what
// is left must be what the rules keep of all that ever was made. That is always possible: the newest
// stays, so a day's newest and the oldest day of a week and of a month are never gone
// before a later one takes their place.
func TestRollingRotation(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 15))
			number := func(most int) int {
				if rnd.IntN(5) == 0 {
					return -1
				}
				return rnd.IntN(most + 1)
			}
			keep := project.BackupRetention{Last: number(12), Daily: number(10), Weekly: number(9), Monthly: number(14)}
			if seed == 0 {
				keep = project.BackupRetention{Last: 10, Daily: 5, Weekly: 4, Monthly: -1} // the default
			}
			var ever, rolling []datedGeneration
			made := time.Date(2024, 1, 1+rnd.IntN(40), 0, 0, 0, 0, time.UTC)
			for end := made.AddDate(3, 0, 0); made.Before(end); {
				g := datedGeneration{NameOf(made), made}
				if rnd.IntN(100) == 0 {
					g.Name = preRestore + g.Name
				}
				ever, rolling = append(ever, g), append(rolling, g)
				if rnd.IntN(10) > 0 { // else something is wrong, and nothing is pruned
					rolling = stays(verdicts(rolling, keep))
					require.Equal(t, ruled(ever, keep), rolling, "after %s, with %+v", g.Name, keep)
				}
				made = made.Add(pause(rnd))
			}
		})
	}
}

// stays are the generations that a rule keeps.
func stays(verdicts []verdict) (out []datedGeneration) {
	for _, v := range verdicts {
		if len(v.KeptBy) > 0 {
			out = append(out, v.datedGeneration)
		}
	}
	return out
}

// ruled is what the rules keep of generations, which are in the order of their times: a naive reading of
// them.
func ruled(ever []datedGeneration, keep project.BackupRetention) (out []datedGeneration) {
	kept := map[string]bool{}
	var own []datedGeneration
	for _, g := range ever {
		if IsPreRestore(g.Name) {
			kept[g.Name] = true
		} else {
			own = append(own, g)
		}
	}
	if len(own) > 0 {
		kept[own[len(own)-1].Name] = true
	}
	newest := func(list []datedGeneration, n int) {
		if n < 0 || n > len(list) {
			n = len(list)
		}
		for _, g := range list[len(list)-n:] {
			kept[g.Name] = true
		}
	}
	newest(own, keep.Last)
	var days, weeks, months []datedGeneration
	for i, g := range own {
		if i+1 == len(own) || own[i+1].Time.YearDay() != g.Time.YearDay() || own[i+1].Time.Year() != g.Time.Year() {
			days = append(days, g)
		}
	}
	for i, g := range days {
		year, week := g.Time.ISOWeek()
		if i == 0 {
			weeks, months = append(weeks, g), append(months, g)
			continue
		}
		before := days[i-1].Time
		if y, w := before.ISOWeek(); y != year || w != week {
			weeks = append(weeks, g)
		}
		if before.Month() != g.Time.Month() || before.Year() != g.Time.Year() {
			months = append(months, g)
		}
	}
	newest(days, keep.Daily)
	newest(weeks, keep.Weekly)
	newest(months, keep.Monthly)
	for _, g := range ever {
		if kept[g.Name] {
			out = append(out, g)
		}
	}
	return out
}

// pause is how long it takes until the next backup: a day as a rule.
func pause(rnd *rand.Rand) time.Duration {
	switch rnd.IntN(20) {
	case 0: // away
		return time.Duration(rnd.IntN(50*24)+1) * time.Hour
	case 1, 2: // once more
		return time.Duration(rnd.IntN(20*3600)+1) * time.Second
	default:
		return 24*time.Hour + time.Duration(rnd.IntN(600)-300)*time.Second
	}
}
