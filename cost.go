package perdure

import "encoding/json"

// CostLine is the usage of a tree's calls to one model at one depth.
type CostLine struct {
	Depth int `json:"depth"`
	// Model is the model that answered; OtherModels in the last line of a tree that
	// called too many models.
	Model string `json:"model"`
	Usage
}

// MarshalJSON encodes the stable form.
func (l CostLine) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Depth int    `json:"depth"`
		Model string `json:"model"`
		usageJSON
	}{l.Depth, l.Model, l.form()})
}

// OtherModels is the model of a [CostLine] that sums several models.
const OtherModels = "(others)"

// maxCostLines bounds the lines in a tree's row of counters.
const maxCostLines = 64

// costLine is a line in the tree's row of counters.
type costLine struct {
	Depth     int    `json:"d"`
	Model     string `json:"m"`
	Calls     int64  `json:"c"`
	Uncertain int64  `json:"x,omitempty"`
	// LostTokens and LostMicros are the reservations of the calls with unknown outcome.
	LostTokens int64 `json:"xt,omitempty"`
	LostMicros int64 `json:"xu,omitempty"`
	Input      int64 `json:"i,omitempty"`
	Output     int64 `json:"o,omitempty"`
	Cached     int64 `json:"k,omitempty"`
	Micros     int64 `json:"u,omitempty"`
	Unpriced   int64 `json:"p,omitempty"`
}

func (l *costLine) add(more *costLine) {
	l.Calls, l.Uncertain = l.Calls+more.Calls, l.Uncertain+more.Uncertain
	l.LostTokens, l.LostMicros = l.LostTokens+more.LostTokens, l.LostMicros+more.LostMicros
	l.Input, l.Output, l.Cached = l.Input+more.Input, l.Output+more.Output, l.Cached+more.Cached
	l.Micros, l.Unpriced = l.Micros+more.Micros, l.Unpriced+more.Unpriced
}

func (l *costLine) usage() Usage {
	return Usage{Calls: l.Calls, InputTokens: l.Input, OutputTokens: l.Output, CachedTokens: l.Cached,
		CostUSD: float64(l.Micros) / microsPerDollar, UnpricedCalls: l.Unpriced, UncertainCalls: l.Uncertain,
		UncertainTokens: l.LostTokens, UncertainCostUSD: float64(l.LostMicros) / microsPerDollar}
}

// spent adds calls to the total of the tree, and to the line of their depth and model.
// All lines are in one row, so that reading them costs the same for any number of calls.
func (st *treeStat) spent(l costLine) {
	st.used.add(&l)
	st.rawCosts = ""
	for i := range st.costs {
		line := &st.costs[i]
		same := line.Depth == l.Depth && line.Model == l.Model
		if !same && i == maxCostLines-1 {
			line.Depth, line.Model = 0, OtherModels
		} else if !same {
			continue
		}
		line.add(&l)
		return
	}
	st.costs = append(st.costs, l)
}

func (st *treeStat) costLines() []CostLine {
	lines := make([]CostLine, len(st.costs))
	for i, l := range st.costs {
		lines[i] = CostLine{Depth: l.Depth, Model: l.Model, Usage: l.usage()}
	}
	return lines
}
