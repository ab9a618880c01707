package check

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/rules"
)

// The parts of SARIF 2.1.0 in the output.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool               sarifTool         `json:"tool"`
		AutomationDetails  sarifID           `json:"automationDetails"`
		OriginalURIBaseIDs map[string]sarifB `json:"originalUriBaseIds"`
		Invocations        []sarifInvocation `json:"invocations"`
		Results            []sarifResult     `json:"results"`
		ColumnKind         string            `json:"columnKind"`
		Properties         map[string]any    `json:"properties"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID                   string         `json:"id"`
		ShortDescription     sarifText      `json:"shortDescription"`
		FullDescription      sarifText      `json:"fullDescription"`
		Help                 sarifHelp      `json:"help"`
		HelpURI              string         `json:"helpUri"`
		DefaultConfiguration sarifLevel     `json:"defaultConfiguration"`
		Properties           map[string]any `json:"properties"`
	}
	sarifResult struct {
		RuleID              string             `json:"ruleId"`
		RuleIndex           int                `json:"ruleIndex"`
		Kind                string             `json:"kind"`
		Level               string             `json:"level"`
		Message             sarifHelp          `json:"message"`
		Locations           []sarifLocation    `json:"locations"`
		PartialFingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions        []sarifSuppression `json:"suppressions"`
		Properties          map[string]any     `json:"properties"`
	}
	sarifLocation struct {
		PhysicalLocation sarifPlace `json:"physicalLocation"`
	}
	sarifPlace struct {
		ArtifactLocation sarifArtifact `json:"artifactLocation"`
		Region           *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI       string `json:"uri"`
		URIBaseID string `json:"uriBaseId"`
	}
	sarifRegion struct {
		StartLine int        `json:"startLine"`
		Snippet   *sarifText `json:"snippet,omitempty"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Status        string `json:"status"`
		Justification string `json:"justification"`
	}
	sarifInvocation struct {
		ExecutionSuccessful        bool                `json:"executionSuccessful"`
		ToolExecutionNotifications []sarifNotification `json:"toolExecutionNotifications"`
	}
	sarifNotification struct {
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	// sarifHelp is a text for programs that read markdown, and for others.
	sarifHelp struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifLevel struct {
		Level string `json:"level"`
	}
	sarifID struct {
		ID string `json:"id"`
	}
	sarifB struct {
		Description sarifText `json:"description"`
	}
)

// sourceRoot is the name of the folder of relative paths.
const sourceRoot = "SRCROOT"

// sarif returns the report as SARIF 2.1.0.
func sarif(r *Report, version string) *sarifLog {
	run := sarifRun{
		Tool:               sarifTool{sarifDriver{Name: "perdure", Version: version, Rules: []sarifRule{}}},
		AutomationDetails:  sarifID{"perdure-check/"},
		OriginalURIBaseIDs: map[string]sarifB{sourceRoot: {sarifText{"the top folder of the repository"}}},
		Invocations:        []sarifInvocation{{ExecutionSuccessful: true, ToolExecutionNotifications: []sarifNotification{}}},
		Results:            []sarifResult{},
		ColumnKind:         "utf16CodeUnits",
		Properties:         map[string]any{"verdict": r.Verdict, "mode": r.Mode, "compared": r.Compared},
	}
	at := make(map[string]int)
	for i, p := range r.rules {
		at[p.ID] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule(&p, r.Mode))
	}
	for i := range r.Findings {
		run.Results = append(run.Results, result(&r.Findings[i], at))
	}
	for i := range r.Waived {
		w := &r.Waived[i]
		res := result(&w.Finding, at)
		res.Suppressions = append(res.Suppressions, sarifSuppression{"external", "accepted", w.Waiver.Reason + by(&w.Waiver)})
		run.Results = append(run.Results, res)
	}
	told := &run.Invocations[0].ToolExecutionNotifications
	for _, s := range r.Skipped {
		n := sarifNotification{Level: "note", Message: sarifText{"not analysed: " + s.Why}}
		if s.File != "" {
			n.Locations = []sarifLocation{{sarifPlace{ArtifactLocation: artifact(s.File)}}}
		}
		*told = append(*told, n)
	}
	for _, note := range r.Notes {
		*told = append(*told, sarifNotification{Level: "note", Message: sarifText{note}})
	}
	return &sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}
}

func rule(p *detect.Pattern, mode detect.Mode) sarifRule {
	text, fix := sentence(p.Title), sentence(detect.Advice(p.ID, p.Type))
	about := fmt.Sprintf("Type %s, severity %s, evidence: %s. %s.", p.Type, p.Severity, tierName(p.Tier), blocks(p.Tier))
	const waive = "If the change is intended, waive the finding in " + rules.FileName + " of the base revision, by its " +
		"fingerprint or by rule and path."
	example := "```yaml\nwaivers:\n  - {pattern: " + p.ID + ", path: \"path/of/the/file\", reason: \"…\"}\n```"
	return sarifRule{
		ID: p.ID, ShortDescription: sarifText{text}, FullDescription: sarifText{text + " " + about},
		Help: sarifHelp{fix + " " + waive,
			fmt.Sprintf("**%s** %s\n\n**Fix:** %s\n\n%s\n\n%s\n", text, about, fix, waive, example)},
		HelpURI: helpURI, DefaultConfiguration: sarifLevel{level(actionOf(p.Tier, mode))},
		Properties: map[string]any{"tags": slices.Concat([]string{string(p.Type)}, p.Aliases), "tier": p.Tier,
			"severity": p.Severity},
	}
}

// sentence returns a text with a capital letter and a period.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}

// helpURI is the page that describes all rules.
const helpURI = "https://github.com/perdure/perdure/blob/main/docs/detection.md"

// blocks returns a sentence about the modes in which findings of a tier block.
func blocks(t detect.Tier) string {
	switch t {
	case detect.Fact:
		return "It blocks in every mode"
	case detect.Sign:
		return fmt.Sprintf("In standard mode it blocks from a confidence of %.0f %%, or else warns", 100*detect.ActConfidence)
	}
	return "It is listed and does not block"
}

// message returns the text of a result: what happened, with the old line if it is not that of
// the location, what to do, and with markdown what changed.
func message(f *Finding) sarifHelp {
	said := f.Finding
	said.File = ""
	text := said.Summary()
	if f.Gone && f.Line > 0 { // the location has the line of the newer version
		text += fmt.Sprintf(" (line %d of the old version)", f.Line)
	}
	m := sarifHelp{Text: text + "\nFix: " + f.Advice + "\nWaive: " + waiverLine(f)}
	if f.Diff == "" {
		return m
	}
	fence := "```"
	for strings.Contains(f.Diff, fence) {
		fence += "`"
	}
	m.Markdown = fmt.Sprintf("%s\n\n%sdiff\n%s%s\n\n**Fix:** %s\n\nWaive: `%s`\n", text, fence, f.Diff, fence, f.Advice,
		waiverLine(f))
	return m
}

// newLine returns the line of a finding in the newer version. A removed line is shown where it
// was: at the beginning of the hunk.
func newLine(f *Finding) int {
	if !f.Gone {
		return f.Line
	}
	_, after, _ := strings.Cut(f.Diff, " +")
	var line int
	if _, err := fmt.Sscanf(after, "%d", &line); err != nil {
		return 0
	}
	return line
}

// level returns the level of an action.
func level(a detect.Action) string {
	return cmp.Or(map[detect.Action]string{detect.Act: "error", detect.Warn: "warning"}[a], "note")
}

func result(f *Finding, at map[string]int) sarifResult {
	index, known := at[f.Pattern]
	if !known {
		index = -1
	}
	// Viewers need a line of the new version.
	place := sarifPlace{ArtifactLocation: artifact(f.File), Region: &sarifRegion{StartLine: max(newLine(f), 1)}}
	if !f.Gone && f.Line > 0 {
		place.Region.Snippet = &sarifText{f.Evidence}
	}
	res := sarifResult{
		RuleID: f.Pattern, RuleIndex: index, Kind: "fail", Level: level(f.Action), Message: message(f),
		Locations:           []sarifLocation{},
		PartialFingerprints: map[string]string{"perdureFinding/v1": f.Fingerprint}, Suppressions: []sarifSuppression{},
		Properties: map[string]any{"type": f.Type, "tier": f.Tier, "severity": f.Severity, "confidence": f.Confidence,
			"action": f.Action},
	}
	if f.File != "" {
		res.Locations = append(res.Locations, sarifLocation{place})
	}
	return res
}

// artifact returns the path of a file as a relative URI.
func artifact(name string) sarifArtifact {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	if strings.Contains(parts[0], ":") { // not a scheme
		parts[0] = strings.ReplaceAll(parts[0], ":", "%3A")
	}
	return sarifArtifact{URI: strings.Join(parts, "/"), URIBaseID: sourceRoot}
}
