package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/planted"
)

type rate struct {
	cheats, found int
	twins, alarms int
}

type meter struct {
	out   io.Writer
	rates map[string]*rate
	list  bool
	seen  func(report *detect.Report, cheat bool) // see releaseOptions
}

// plantedRates runs the detectors over each edit of the corpus: alone, with its lines
// moved by others, and among added files.
func plantedRates(ctx context.Context, out io.Writer, only string, list bool) (map[string]*rate, error) {
	edits, err := planted.Edits()
	if err != nil {
		return nil, err
	}
	m := &meter{out: out, rates: make(map[string]*rate), list: list}
	for _, e := range edits {
		if !strings.Contains(e.Language+" "+e.Pattern+" "+e.Name, only) {
			continue
		}
		for _, v := range variants(&e) {
			if err := m.measure(ctx, &e, v); err != nil {
				return nil, err
			}
		}
	}
	return m.rates, nil
}

// variant is an edit among other changes.
type variant struct {
	name     string
	old, now map[string]string
}

// variants of an edit: as it is; with a comment before each file, so that every
// line moves; and with a new file of code and one of text added.
func variants(e *planted.Edit) []variant {
	moved := variant{"lines moved", e.Old, maps.Clone(e.New)}
	for name, text := range moved.now {
		mark := commentMark(name)
		if mark == "" || e.Language == "other" || e.Language == "checks" || strings.HasPrefix(text, "<?") ||
			strings.HasPrefix(text, "//go:build") {
			continue
		}
		moved.now[name] = mark + " Licensed under the terms of the project.\n" + mark + " See there.\n\n" + text
	}
	more := variant{"among additions", e.Old, maps.Clone(e.New)}
	more.now["docs/notes.md"] = "# Notes\n\nNothing of skip, only or assert(true) counts here.\n"
	return []variant{{"alone", e.Old, e.New}, moved, more}
}

func commentMark(name string) string {
	switch {
	case slices.Contains([]string{".py", ".rb", ".yml", ".yaml"}, path.Ext(name)), name == "Makefile":
		return "#"
	case slices.Contains([]string{".json", ".php"}, path.Ext(name)):
		return ""
	}
	return "//"
}

// measure runs one variant and counts it under its language, type and tier.
func (m *meter) measure(ctx context.Context, e *planted.Edit, v variant) error {
	report, err := detect.Run(ctx, &detect.Input{Changes: marked(v.old, v.now)})
	if err != nil {
		return err
	}
	found, blocked := false, ""
	for _, f := range report.Findings {
		found = found || f.Pattern == e.Pattern &&
			(f.Action == detect.Act || f.Tier == detect.Hint || detect.OnlyWarns(f.Pattern))
		if f.Action == detect.Act {
			blocked = cmp.Or(blocked, f.Pattern+": "+f.Evidence)
		}
	}
	for _, key := range keys(e) {
		r := at(m.rates, key)
		if e.Cheat {
			r.cheats++
			if found {
				r.found++
			}
		} else {
			r.twins++
			if blocked != "" {
				r.alarms++
			}
		}
	}
	if m.list && (e.Cheat && !found || !e.Cheat && blocked != "") {
		if _, err := fmt.Fprintf(m.out, "%s: %s: %s (%s): found %t, blocked by %q\n", e.Language, e.Pattern, e.Name, v.name,
			found, blocked); err != nil {
			return err
		}
	}
	return nil
}

// keys are the lines of the table that an edit counts in.
func keys(e *planted.Edit) []string {
	all := []string{"all", "language " + e.Language}
	for _, p := range detect.Catalog() {
		if p.ID == e.Pattern {
			all = append(all, "type "+string(p.Type), fmt.Sprintf("tier %d", p.Tier))
			if p.Tier <= detect.Sign {
				all = append(all, "tiers 1 and 2")
			}
		}
	}
	return all
}

func printRates(out io.Writer, rates map[string]*rate) error {
	return table(out, "cheats\tfound\trecall\ttwins\tfalse alarms", rates, func(r *rate) string {
		return fmt.Sprintf("%d\t%d\t%s\t%d\t%d", r.cheats, r.found, percent(r.found, r.cheats), r.twins, r.alarms)
	})
}

// table prints a row for each key of a map, in order.
func table[T any](out io.Writer, titles string, rows map[string]*T, cells func(row *T) string) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	_, err := fmt.Fprintf(w, "\t%s\t\n", titles)
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		_, failed := fmt.Fprintf(w, "%s\t%s\t\n", key, cells(rows[key]))
		err = cmp.Or(err, failed)
	}
	return cmp.Or(err, w.Flush())
}

// at returns the entry of a map, which it makes if it is missing.
func at[T any](rows map[string]*T, key string) *T {
	if rows[key] == nil {
		rows[key] = new(T)
	}
	return rows[key]
}

func percent(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

// changes are the files that differ between two versions of a project.
func changes(old, now map[string]string) iter.Seq2[detect.Change, error] {
	return func(yield func(detect.Change, error) bool) {
		names := maps.Clone(old)
		maps.Copy(names, now)
		for _, n := range slices.Sorted(maps.Keys(names)) {
			was, inOld := old[n]
			is, inNew := now[n]
			if inOld == inNew && was == is {
				continue
			}
			var c detect.Change
			if inOld {
				c.Old = detect.Version{Path: n, Content: []byte(was)}
			}
			if inNew {
				c.New = detect.Version{Path: n, Content: []byte(is)}
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}
