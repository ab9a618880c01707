package check

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/rules"
)

// settings are the settings of detection.
type settings struct {
	mode    detect.Mode
	set     rules.Settings
	rules   *detect.Rules
	waivers []detect.Waiver
	now     time.Time
	notes   []string
}

// settings reads the settings: the flag, the user's settings, and the project's file in
// the older version. An invalid file is ignored with a note, so that a commit can correct
// it.
func (c *commands) settings(ctx context.Context, l *config.Loaded, v *versions, mode detect.Mode) (*settings, error) {
	s := &settings{mode: mode, set: l.Loop.Rules, now: time.Now()}
	own, err := rules.Own(c.Getenv, v.root)
	if err != nil {
		return nil, env.UsageError("", "%s", oneLine(err.Error()))
	}
	s.waivers = own
	text, err := v.trusted(ctx, rules.FileName)
	if err != nil {
		return nil, err
	}
	var detection detect.Mode
	if text != nil {
		project, err := rules.Parse(rules.FileName, text)
		if err != nil {
			s.notes = append(s.notes,
				"the project's settings are ignored, because they are invalid in the older version: "+oneLine(err.Error()))
		} else {
			s.set, s.waivers, detection = s.set.With(&project.Settings), slices.Concat(own, project.Waivers), project.Detection
		}
	}
	if l.Set("loop.detection") {
		detection = ""
	}
	s.mode = cmp.Or(s.mode, detection, detect.Mode(l.Loop.Detection))
	if s.rules, err = s.set.Rules(); err != nil {
		return nil, env.UsageError("", "read settings: %s", oneLine(err.Error()))
	}
	if own := l.Loop.Rules; !own.Equal(&rules.Settings{}) {
		s.notes = append(s.notes, "your own settings apply too: "+own.String())
	}
	if less := (rules.Settings{Types: s.set.Types, Off: s.set.Off}); len(less.Types)+len(less.Off) > 0 {
		s.notes = append(s.notes, "the settings limit detection: "+less.String())
	}
	s.notes = append(s.notes, rules.Ended(s.waivers, s.now)...)
	return s, nil
}

// proposed returns the problem of the project's file in the newer version, or "".
func proposed(d *detect.Change) string {
	if d.New.Path != rules.FileName || d.New.Content == nil {
		return ""
	}
	if _, err := rules.Parse(rules.FileName, d.New.Content); err != nil {
		return oneLine(err.Error())
	}
	return ""
}

// oneLine returns the lines of a text, such as joined errors, as one line.
func oneLine(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ") }
