package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	loopconfig "github.com/perdure/perdure/loop/config"
)

func TestMetricsInTheFile(t *testing.T) {
	t.Parallel()
	p := parseFile("config.yaml", []byte("loop:\n  coverage: off\n  metrics:\n    words: wc -w < a\n"+
		"    size_kb: {command: du -sk ., better: down}\n"))
	want := []loopconfig.Metric{{Name: "words", Command: "wc -w < a"},
		{Name: "size_kb", Command: "du -sk .", Better: loopconfig.BetterDown}}
	if diff := cmp.Diff(want, p.metrics); diff != "" || len(p.problems) > 0 || p.values["loop.coverage"].text != "off" {
		t.Errorf("%v (-want +got):\n%s", p.problems, diff)
	}
	many := "loop: {metrics: {"
	for i := range 21 {
		many += strings.Repeat("x", i+1) + ": a, "
	}
	for text, want := range map[string]string{
		"loop: {metrics: [x]}":                          "loop.metrics is not a section",
		"loop: {metrics: {x: ''}}":                      "has no command",
		"loop: {metrics: {x: 5}}":                       "has no command",
		"loop: {metrics: {'a b': x}}":                   "a name has",
		"loop: {metrics: {x: {command: a, best: up}}}":  `unknown key "best"`,
		"loop: {metrics: {x: {command: a, better: b}}}": `better is "b"`,
		many + "}}": "the limit is 20",
	} {
		p := parseFile("config.yaml", []byte(text))
		if len(p.problems) == 0 || !strings.Contains(p.problems[0].Error(), want) {
			t.Errorf("%s: %v", text, p.problems)
		}
	}
}

func TestMeasures(t *testing.T) {
	t.Parallel()
	l := LoopMetrics{Coverage: "auto", Types: "off", Lint: "make lint", SensitiveThreshold: 1,
		SensitivePaths: " core , src/**,"}
	want := loopconfig.Measures{Coverage: "auto", Types: "off", Lint: "make lint", CoverageThreshold: -1,
		SensitiveThreshold: 1, SensitivePaths: []string{"core", "src/**"}}
	if diff := cmp.Diff(want, l.Measures()); diff != "" {
		t.Error(diff)
	}
}
