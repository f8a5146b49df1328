package retention

import (
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// series are n records of a reason, an hour apart, oldest first.
func series(reason string, n int) (list []Record) {
	for i := range n {
		list = append(list, Record{ID: fmt.Sprintf("%s-%d", reason, i), Reason: reason, Started: start.Add(time.Duration(i) * time.Hour)})
	}
	return list
}

func kept(list []Verdict) (ids []string) {
	for _, v := range list {
		if v.Keep {
			ids = append(ids, v.ID)
		}
	}
	return ids
}

func why(list []Verdict, id string) []string {
	i := slices.IndexFunc(list, func(v Verdict) bool { return v.ID == id })
	return list[i].Why
}

func TestTheLastOnesStay(t *testing.T) {
	list := Decide(series("manual", 56), map[string]Policy{"manual": {Last: 50}}, time.UTC)
	require.Len(t, kept(list), 50)
	require.Equal(t, "manual-6", kept(list)[0])
	require.Equal(t, []string{"not among the last 50 of manual"}, why(list, "manual-5"))
	require.Equal(t, []string{"among the last 50 of manual"}, why(list, "manual-6"))
	require.Equal(t, []string{"the newest record", "among the last 50 of manual"}, why(list, "manual-55"))
}

func TestWhatIsAlwaysKept(t *testing.T) {
	at := func(id, reason string, hour int, more func(*Record)) Record {
		r := Record{ID: id, Reason: reason, Started: start.Add(time.Duration(hour) * time.Hour)}
		if more != nil {
			more(&r)
		}
		return r
	}
	none := map[string]Policy{"run": {}, "manual": {}, "publish": {}, "restore": {}, "revert": {}}
	list := Decide([]Record{
		at("labelled", "manual", 1, func(r *Record) { r.Labelled = true }),
		at("target", "run", 2, nil),
		at("revert", "revert", 3, func(r *Record) { r.Needs, r.Labelled = []string{"target"}, true }),
		at("publish0", "publish", 4, nil),
		at("publish1", "publish", 5, nil),
		at("restore0", "restore", 6, nil),
		at("restore1", "restore", 7, nil),
		at("open", "run", 8, func(r *Record) { r.Open = true }),
		at("outbox", "run", 8, func(r *Record) { r.Outbox = true; r.Seq = 1 }),
		at("message", "run", 8, func(r *Record) { r.UnderWay = true; r.Seq = 2 }),
		at("plain", "run", 9, nil),
		at("newest", "run", 10, nil),
		at("future", "of another version", 0, nil),
	}, none, time.UTC)
	require.Equal(t, []string{"future", "labelled", "target", "revert", "publish1", "restore1", "open", "outbox", "message", "newest"}, kept(list))
	require.Equal(t, []string{"needed to undo revert"}, why(list, "target"))
	require.Equal(t, []string{"none of run are kept"}, why(list, "plain"))

	Shrink(list, "cap", func() bool { return true }, func(string) {})
	require.Equal(t, []string{"labelled", "target", "revert", "publish1", "restore1", "open", "outbox", "message", "newest"}, kept(list), "a cap takes none of them")
}

// TestADayCountsOnce: a machine whose clock begins each boot in 2020, until the network tells the time.
func TestADayCountsOnce(t *testing.T) {
	var list []Record
	for day := range 4 {
		wrong := time.Date(2020, 1, 1, 0, day, 0, 0, time.UTC)
		right := start.AddDate(0, 0, day)
		for i, at := range []time.Time{wrong, right} {
			list = append(list, Record{ID: fmt.Sprintf("%d-%d", day, i), Reason: "run", Started: at, Order: start.AddDate(0, 0, day).Add(time.Duration(i)).UnixNano()})
		}
	}
	require.Equal(t, []string{"0-1", "1-1", "2-1", "3-0", "3-1"}, kept(Decide(list, map[string]Policy{"run": {Daily: 5}}, time.UTC)))
}

// TestAgesCountFromTheNewest: a project that rested for a year loses nothing by it.
func TestAgesCountFromTheNewest(t *testing.T) {
	list := Decide(series("run", 30), map[string]Policy{"run": {MaxAge: 5 * time.Hour}}, time.UTC)
	require.Equal(t, []string{"run-24", "run-25", "run-26", "run-27", "run-28", "run-29"}, kept(list))
	require.Equal(t, []string{"older than 5h"}, why(list, "run-23"))

	list = Decide(series("run", 30), map[string]Policy{"run": {Last: 10, MaxAge: 5 * time.Hour}}, time.UTC)
	require.Len(t, kept(list), 10, "a union: an age takes nothing that a number keeps")
	require.Equal(t, []string{"among the last 10 of run"}, why(list, "run-20"))
	require.Equal(t, []string{"kept by no rule for run"}, why(list, "run-19"))
	list = Decide(series("run", 30), map[string]Policy{"run": {Last: 3, MaxAge: 5 * time.Hour}}, time.UTC)
	require.Len(t, kept(list), 6)
}

func TestBuckets(t *testing.T) {
	zone := time.FixedZone("far", 13*3600)
	on := func(text string) Record {
		at, err := time.ParseInLocation("2006-01-02 15:04", text, zone)
		require.NoError(t, err)
		return Record{ID: text, Reason: "manual", Started: at}
	}
	records := []Record{
		on("2025-12-28 10:00"), // a Sunday: week 52
		on("2025-12-29 10:00"), // a Monday: week 1 of 2026
		on("2026-01-01 00:10"),
		on("2026-01-01 23:50"), // the same local day, another one in UTC
		on("2026-01-04 12:00"), // Sunday
		on("2026-01-05 09:00"), // week 2
	}
	get := func(p Policy) []string { return kept(Decide(records, map[string]Policy{"manual": p}, zone)) }
	require.Equal(t, []string{"2026-01-01 23:50", "2026-01-04 12:00", "2026-01-05 09:00"}, get(Policy{Daily: 3}))
	require.Equal(t, []string{"2025-12-28 10:00", "2026-01-04 12:00", "2026-01-05 09:00"}, get(Policy{Weekly: 3}))
	require.Equal(t, []string{"2025-12-29 10:00", "2026-01-05 09:00"}, get(Policy{Monthly: 2}))
	require.Equal(t, []string{"2025-12-29 10:00", "2026-01-04 12:00", "2026-01-05 09:00"}, get(Policy{Last: 2, Daily: 1, Monthly: 5}), "a union")
}

// TestShrinkOrder: automatic ones before runs before manual ones, the oldest
// first, and what another needs not before that one.
func TestShrinkOrder(t *testing.T) {
	var records []Record
	for i, reason := range []string{"publish", "manual", "run", "revert", "auto", "manual", "auto", "run", "publish", "manual"} {
		records = append(records, Record{ID: strconv.Itoa(i), Reason: reason, Started: start.Add(time.Duration(i))})
	}
	records[3].Needs = []string{"2"}
	for _, c := range []struct {
		n    int
		want []string
	}{
		{3, []string{"4", "6", "3"}},
		{100, []string{"4", "6", "3", "2", "7", "1", "5", "0"}},
	} {
		var gone []string
		list := Decide(records, nil, time.UTC)
		Shrink(list, "too large", func() bool { return len(gone) < c.n }, func(id string) { gone = append(gone, id) })
		require.Equal(t, c.want, gone)
		require.Len(t, kept(list), 10-len(gone))
		require.Equal(t, []string{"too large"}, why(list, "4"))
	}
}

// naive decides about one record by counting, without order or buckets.
func naive(records []Record, policies map[string]Policy, loc *time.Location) map[string]bool {
	newer := func(a, b Record) bool { return a.compare(&b) > 0 }
	out := map[string]bool{}
	for _, r := range records {
		p, known := policies[r.Reason]
		newest, newestOfReason := true, true
		before := 0 // newer ones of the reason
		var top time.Time
		units := []func(time.Time) string{
			func(t time.Time) string { return fmt.Sprint(t.Year(), t.YearDay()) },
			func(t time.Time) string { return fmt.Sprint(t.ISOWeek()) },
			func(t time.Time) string { return fmt.Sprint(t.Year(), t.Month()) },
		}
		first, later := []bool{true, true, true}, []map[string]bool{{}, {}, {}}
		for _, o := range records {
			if o.Started.After(top) {
				top = o.Started
			}
			if !newer(o, r) {
				continue
			}
			newest = false
			if o.Reason != r.Reason {
				continue
			}
			newestOfReason = false
			before++
			for k, unit := range units {
				if unit(o.Started.In(loc)) == unit(r.Started.In(loc)) {
					first[k] = false
				}
				later[k][unit(o.Started.In(loc))] = true
			}
		}
		byRule := !known || p.All || before < p.Last || p.MaxAge > 0 && top.Sub(r.Started) <= p.MaxAge
		for k, n := range []int{p.Daily, p.Weekly, p.Monthly} {
			byRule = byRule || first[k] && len(later[k]) < n
		}
		out[r.ID] = newest || r.Open || r.Labelled || r.Redo || byRule || newestOfReason && (r.Reason == "publish" || r.Reason == "restore")
	}
	for grown := true; grown; {
		grown = false
		for _, r := range records {
			for _, id := range r.Needs {
				if was, known := out[id]; out[r.ID] && known && !was {
					out[id], grown = true, true
				}
			}
		}
	}
	return out
}

// TestDecideIsTheNaiveDecision over random histories and policies.
func TestDecideIsTheNaiveDecision(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		zone = time.FixedZone("east", 3600)
	}
	reasons := []string{"run", "manual", "auto", "publish", "restore", "revert", "apply"}
	for seed := range int64(2000) {
		rng := rand.New(rand.NewSource(seed))
		var records []Record
		at := start
		for i := range rng.Intn(40) {
			at = at.Add(time.Duration(rng.Int63n(int64(100 * time.Hour))))
			r := Record{ID: strconv.Itoa(i), Reason: reasons[rng.Intn(len(reasons))], Started: at, Seq: rng.Intn(3),
				Open: rng.Intn(40) == 0, Labelled: rng.Intn(20) == 0, Redo: rng.Intn(20) == 0}
			if i > 0 && (r.Reason == "revert" || r.Reason == "apply") {
				r.Needs = []string{strconv.Itoa(rng.Intn(i)), "gone"}
			}
			records = append(records, r)
		}
		policies := map[string]Policy{}
		for _, reason := range reasons[:rng.Intn(len(reasons)+1)] {
			p := Policy{All: rng.Intn(6) == 0}
			for _, n := range []*int{&p.Last, &p.Daily, &p.Weekly, &p.Monthly} {
				if rng.Intn(3) == 0 {
					*n = rng.Intn(6)
				}
			}
			if rng.Intn(3) == 0 {
				p.MaxAge = time.Duration(rng.Intn(60)+1) * 24 * time.Hour
			}
			policies[reason] = p
		}
		want := naive(records, policies, zone)
		rng.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
		for _, v := range Decide(records, policies, zone) {
			require.Equal(t, want[v.ID], v.Keep, "seed %d, record %s: %v", seed, v.ID, v.Why)
			require.NotEmpty(t, v.Why)
		}
	}
}

// TestOrderBeforeStart: records of a time when the clock was ahead are not the newest.
func TestOrderBeforeStart(t *testing.T) {
	at := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	var list []Record
	for i := range 6 {
		r := Record{ID: string(rune('a' + i)), Order: int64(i), Reason: "run", Started: at.Add(time.Duration(i) * time.Hour)}
		if i < 3 {
			r.Started = r.Started.AddDate(1, 0, 0)
		}
		list = append(list, r)
	}
	var kept []string
	for _, v := range Decide(list, map[string]Policy{"run": {Last: 2}}, time.UTC) {
		if v.Keep {
			kept = append(kept, v.ID)
		}
	}
	require.Equal(t, []string{"e", "f"}, kept)
}
