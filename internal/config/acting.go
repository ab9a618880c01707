package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/toolguard/risk"
	loopconfig "github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
)

// Acting is a setting of the settings file that executes, connects, redirects or permits.
// A file can come with a repository, so such settings are used only in a folder that the
// user trusts.
type Acting struct {
	// Key is the name in the file, Value its whole value on one line without secrets, Effect
	// what it does.
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
	// Overridden is set if a flag or an environment variable overrides it in this process.
	Overridden bool `json:"overridden,omitempty"`
	// Change is "new" or "changed" if the user trusted other settings before.
	Change string `json:"change,omitempty"`
}

// acting is an Acting with its whole value.
type acting struct {
	Acting
	raw string
}

// acts returns a function for settings of which every value acts.
func acts(effect string) func(string) string { return func(string) string { return effect } }

// actsAs returns a function for settings of which only these values act.
func actsAs(effect string, values ...string) func(string) string {
	return func(text string) string {
		if slices.Contains(values, text) {
			return effect
		}
		return ""
	}
}

// metricEffect returns what a setting of a metric does: it runs a command or, with off,
// hides what the metric shows.
func metricEffect(text string) string {
	switch text {
	case loopconfig.Auto:
		return ""
	case loopconfig.Off:
		return effectWeakens
	}
	return effectRuns
}

// weakensUnless returns that a number weakens the checks, unless holds is true for it.
func weakensUnless(text string, holds func(float64) bool) string {
	if x, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64); err == nil && holds(x) {
		return ""
	}
	return effectWeakens
}

const (
	effectWeakens = "lets changes pass that are found by default"

	effectRuns    = "runs this command"
	effectBaseURL = "sends requests and the API key there"
	effectPrices  = "sets the prices by which budgets count"
)

// PricesName is the name of the file of prices in the .perdure folder, which is used if the
// setting prices is empty.
const PricesName = "prices.yaml"

// ModelEffect returns what a model, or a chain of them separated by commas, does besides
// reading its prompt, or "".
func ModelEffect(chain string) string {
	effect := ""
	for name := range strings.SplitSeq(chain, ",") {
		kind, _, _ := strings.Cut(strings.TrimSpace(name), ":")
		switch kind {
		case "", "builtin", "mock", "rule":
		case "exec":
			return effectRuns // it can contain commas
		default:
			effect = "sends the context to this model, with your API key"
		}
	}
	return effect
}

// findActing lists the settings of the file that act, in the order of their names.
func (l *Loaded) findActing(file map[string]given) []acting {
	var all []acting
	for _, key := range sortedKeys(file) {
		s, ok := find(&Config{}, key)
		if !ok || s.acts == nil {
			continue
		}
		text := file[key].text
		effect, shown := s.acts(text), text
		if effect == "" {
			continue
		}
		if s.secret != nil {
			shown = s.secret(text)
		}
		if key == "prices" {
			text += l.fileHash(text)
		}
		all = append(all, acting{Acting{Key: key, Value: clip.OneLine(shown), Effect: effect}, text})
	}
	name := filepath.Join(l.Dir, PricesName)
	if hash := l.fileHash(name); hash != "" && l.Prices == "" {
		all = append(all, acting{Acting{Key: PricesName, Value: name, Effect: effectPrices}, hash})
	}
	return append(all, l.actingSections()...)
}

// actingSections lists the sections of the file that act.
func (l *Loaded) actingSections() []acting {
	var all []acting
	add := func(key, effect string, value any, shown []string) {
		if len(shown) == 0 {
			return
		}
		raw, err := json.Marshal(value)
		if err != nil {
			raw = []byte(err.Error()) // it acts all the same
		}
		text := clip.OneLine(strings.Join(shown, "; "))
		all = append(all, acting{Acting{Key: key, Value: text, Effect: effect}, string(raw)})
	}
	var shown []string
	for _, h := range l.Loop.Hooks {
		shown = append(shown, string(h.Hook)+" "+cmp.Or(h.Command, h.URL))
	}
	add(hook.SettingsKey, "runs these handlers", l.Loop.Hooks, shown)
	shown = nil
	for _, kind := range sortedKeys(l.Loop.Chains) {
		shown = append(shown, kind+": "+strings.Join(l.Loop.Chains[kind], ", "))
	}
	add(chainsKey, "starts these agents", l.Loop.Chains, shown)
	shown = nil
	for _, m := range l.Loop.Metrics {
		shown = append(shown, m.Name+": "+m.Command)
	}
	add(metricsKey, "runs these commands", l.Loop.Metrics, shown)
	shown = nil
	weaker := l.weakerRisks()
	for _, pattern := range sortedKeys(weaker) {
		shown = append(shown, fmt.Sprintf("%s: %s", pattern, weaker[pattern]))
	}
	add(risksKey, "allows these tool calls", weaker, shown)
	r := &l.Loop.Rules
	shown = nil
	for _, kind := range r.Types {
		shown = append(shown, string(kind))
	}
	add(typesKey, effectWeakens, r.Types, shown)
	add(offKey, effectWeakens, r.Off, r.Off)
	shown = nil
	for _, pattern := range sortedKeys(r.Actions) {
		shown = append(shown, pattern+": "+string(r.Actions[pattern]))
	}
	add(actionsKey, effectWeakens, r.Actions, shown)
	if r.ActConfidence > detect.ActConfidence {
		add(confidenceKey, effectWeakens, r.ActConfidence, []string{fmt.Sprint(r.ActConfidence)})
	}
	return all
}

// fileHash returns a hash of a file of the project, or "" if it is not a regular file that
// can be read.
func (l *Loaded) fileHash(name string) string {
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(l.Dir), name)
	}
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// weakerRisks returns the answers to risky calls that allow more than the default does.
func (l *Loaded) weakerRisks() map[risk.Pattern]risk.Answer {
	order := []risk.Answer{risk.Allow, risk.Warn, risk.Gate, risk.Block}
	weaker := make(map[risk.Pattern]risk.Answer)
	for _, rule := range risk.Table() {
		answer, set := l.Loop.Risks[rule.Pattern]
		if set && slices.Index(order, answer) < slices.Index(order, rule.Answer) {
			weaker[rule.Pattern] = answer
		}
	}
	for key, answer := range l.Loop.Risks { // a command of the table needs a person by default
		if strings.HasPrefix(string(key), risk.CommandPrefix) && (answer == risk.Allow || answer == risk.Warn) {
			weaker[key] = answer
		}
	}
	return weaker
}

// Acting returns the settings of the file that act and that no flag or environment
// variable overrides.
func (l *Loaded) Acting() []Acting {
	if l.actingIgnored {
		return nil
	}
	return slices.DeleteFunc(l.AllActing(), func(a Acting) bool { return a.Overridden })
}

// AllActing returns all settings of the file that act, also overridden and ignored ones: what
// [Loaded.ActingHash] covers.
func (l *Loaded) AllActing() []Acting {
	var all []Acting
	for _, a := range l.acting {
		a.Overridden = !l.effective(a.Key)
		all = append(all, a.Acting)
	}
	return all
}

// effective reports whether a setting of the file is used.
func (l *Loaded) effective(key string) bool {
	origin, inTable := l.origins[key]
	return !inTable || origin.kind == OriginFile
}

// ActingHash returns a hash of the settings that [Loaded.AllActing] returns.
func (l *Loaded) ActingHash() string {
	h := sha256.New()
	for _, a := range l.acting {
		_, _ = fmt.Fprintf(h, "%q=%q\n", a.Key, a.raw)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ActingHashes returns a short hash of each setting of the file that acts, by its name.
func (l *Loaded) ActingHashes() map[string]string {
	hashes := make(map[string]string, len(l.acting))
	for _, a := range l.acting {
		const length = 8
		sum := sha256.Sum256([]byte(a.raw))
		hashes[a.Key] = hex.EncodeToString(sum[:length])
	}
	return hashes
}

// IgnoreActing sets the settings that [Loaded.Acting] returns to their defaults. Profiles
// with one of them are removed.
func (l *Loaded) IgnoreActing() {
	for _, a := range l.Acting() {
		switch a.Key {
		case PricesName:
			l.pricesIgnored = true
		case hook.SettingsKey:
			l.Loop.Hooks = nil
		case chainsKey:
			l.Loop.Chains = nil
		case metricsKey:
			l.Loop.Metrics = nil
		case risksKey:
			weaker := l.weakerRisks()
			maps.DeleteFunc(l.Loop.Risks, func(p risk.Pattern, _ risk.Answer) bool { return weaker[p] != "" })
		case typesKey:
			l.Loop.Rules.Types = nil
		case offKey:
			l.Loop.Rules.Off = nil
		case actionsKey:
			l.Loop.Rules.Actions = nil
		case confidenceKey:
			l.Loop.Rules.ActConfidence = 0
		default:
			l.ignore(a.Key)
		}
	}
	l.actingIgnored = true
}

func (l *Loaded) ignore(key string) {
	entry := entryName(key)
	if entry == "" {
		s, _ := find(&l.Config, key)
		_ = s.set(s.def) // TestDefaults checks the defaults
		l.origins[key] = origin{kind: OriginDefault}
		return
	}
	if section, name, _ := strings.Cut(entry, "."); section == toolSection {
		delete(l.Tools, name)
	} else {
		delete(l.Agents, name)
	}
	for _, k := range sortedKeys(l.origins) {
		if entryName(k) == entry {
			delete(l.origins, k)
		}
	}
}

// UsesPricesFile reports whether [PricesName] in the .perdure folder is used if it exists.
func (l *Loaded) UsesPricesFile() bool { return l.Prices == "" && !l.pricesIgnored }
