package loop

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
)

func TestOverruns(t *testing.T) {
	t.Parallel()
	const minute = 60_000
	for name, c := range map[string]struct {
		times     state.Times
		detection time.Duration
		cfg       config.Config
		want      []hook.WarningKind
	}{
		"within":         {times: state.Times{Agent: minute, Snapshot: 5900}, detection: 500 * time.Millisecond},
		"slow detection": {detection: 501 * time.Millisecond, want: []hook.WarningKind{hook.WarnLatency}},
		"snapshots": {times: state.Times{Agent: minute / 2, Check: minute / 2, Snapshot: 3000, Hooks: 2000, Engine: 1001},
			want: []hook.WarningKind{hook.WarnOverhead}},
		"not noticeable": {times: state.Times{Agent: 100, Snapshot: 900}},
		"both": {times: state.Times{Agent: minute, Engine: 7000}, detection: 6 * time.Second,
			want: []hook.WarningKind{hook.WarnLatency, hook.WarnOverhead}},
		"nothing to limit": {times: state.Times{Agent: minute, Engine: 7000}, detection: time.Minute,
			cfg: config.Config{DetectionBudget: -1, OverheadPercent: -1}},
		"other budgets": {times: state.Times{Agent: minute, Engine: 7000}, detection: time.Second,
			cfg: config.Config{DetectionBudget: time.Second, OverheadPercent: 20}},
	} {
		cfg := c.cfg.WithDefaults()
		var got []hook.WarningKind
		for _, w := range overruns(&cfg, &c.times, c.detection) {
			if got = append(got, w.Kind); !strings.Contains(w.Message, "the budget is") {
				t.Errorf("%s: %s", name, w.Message)
			}
		}
		if len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
