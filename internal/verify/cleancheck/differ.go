package cleancheck

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/verify/machine"
)

// Differences are what is different for a check in a clean copy from the workspace, and what
// the check printed there.
type Differences struct {
	// Sandbox is set if there was no network, and no file outside could be written. Opens is
	// set if the check passes in a copy without that.
	Sandbox bool `json:"sandbox,omitempty"`
	Opens   bool `json:"opens,omitempty"`
	// Variables are the names of variables that were replaced or not set.
	Variables []string `json:"variables,omitempty"`
	// Ignored are ignored files that were not copied, because the loop added or changed them;
	// the check fails with them, too. NoIgnored is set if none was copied, because a setup
	// command creates what is needed.
	Ignored   []string `json:"ignored,omitempty"`
	NoIgnored bool     `json:"no_ignored,omitempty"`
	// Caches are files because of which a cache of packages was not used.
	Caches []string `json:"caches,omitempty"`
	// Messages are the messages of the first failing tests, in the order of the verdict's
	// Tests; Output is the end of the output if there are none.
	Messages []string `json:"messages,omitempty"`
	Output   string   `json:"output,omitempty"`
}

// Limits of what differences hold.
const (
	maxListed   = 20
	maxMessages = 5
	maxMessage  = 400
	maxOutput   = 1000
)

func (s *sealing) differences(clean *outcome, opens bool) *Differences {
	d := &Differences{Sandbox: s.confined, Opens: opens, Variables: s.replaced, NoIgnored: s.Setup != nil,
		Caches: s.excluded[:min(len(s.excluded), maxListed)]}
	ignored := paths(slices.Concat(s.drift.left, s.drift.caches))
	d.Ignored = ignored[:min(len(ignored), maxListed)]
	if clean.Report != nil {
		said := make(map[string]string)
		for i := range clean.Report.Tests {
			t := &clean.Report.Tests[i]
			if t.Outcome != testreport.Passed {
				said[t.ID] = t.Message
			}
		}
		any := false
		for _, id := range s.v.Tests[:min(len(s.v.Tests), maxMessages)] {
			message := clip.Bytes(strings.TrimSpace(said[id]), maxMessage)
			any = any || message != ""
			d.Messages = append(d.Messages, message)
		}
		if any {
			return d
		}
		d.Messages = nil
	}
	d.Output = strings.ToValidUTF8(clip.End(strings.TrimSpace(clean.Output+"\n"+clean.problem), maxOutput), "")
	return d
}

// Lines returns the differences as sentences.
func (d *Differences) Lines() []string {
	var lines []string
	switch {
	case d.Opens:
		lines = append(lines, "There is no network, and files outside cannot be written. With both, the check passes.",
			"The workspace, and sockets in /tmp and /run, cannot be seen.")
	case d.Sandbox:
		lines = append(lines, "There is no network, and files outside cannot be written. With both, the check fails, too.")
	}
	lines = append(lines, "The folder has another path.",
		"The home folder and the folder for temporary files are new and empty.")
	if len(d.Variables) > 0 {
		lines = append(lines, "Variables with another value or none: "+some(d.Variables)+".")
	}
	switch {
	case d.NoIgnored:
		lines = append(lines, "Files that git ignores are not copied; the setup command creates them.")
	case len(d.Ignored) > 0:
		lines = append(lines, "Ignored files that the loop added or changed are not copied (with them it fails, too): "+
			some(d.Ignored)+".")
	}
	if len(d.Caches) > 0 {
		lines = append(lines, "Caches of packages are not used if the loop changed them: "+some(d.Caches)+".")
	}
	return lines
}

// replacedVariables returns the names of variables that differ in a copy, without those of
// the home folder, of the folders for temporary files and of the current folder.
func (s *sealing) replacedVariables(env []string) []string {
	var names []string
	for _, v := range s.env {
		name, value, _ := strings.Cut(v, "=")
		usual := slices.Contains([]string{"HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TMPDIR", "TMP", "TEMP", "PWD",
			"OLDPWD"}, name) || strings.HasPrefix(name, "PERDURE_")
		if s.own(name) && !usual && machine.Get(env, name) != value && len(names) < maxListed {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
