package perdure

import "encoding/json"

// CostLine is what the calls of a tree to one model at one depth took.
type CostLine struct {
	Depth int `json:"depth"`
	// Model is who answered; OtherModels where a tree asked more than are told
	// apart.
	Model string `json:"model"`
	Usage
}

// OtherModels is the model of a [CostLine] that sums up several.
const OtherModels = "(others)"

// maxCostLines bounds what a tree's row of counters holds.
const maxCostLines = 64

// costLine is a line as the tree's row holds it.
type costLine struct {
	Depth     int    `json:"d"`
	Model     string `json:"m"`
	Calls     int64  `json:"c"`
	Uncertain int64  `json:"x,omitempty"`
	Input     int64  `json:"i,omitempty"`
	Output    int64  `json:"o,omitempty"`
	Cached    int64  `json:"k,omitempty"`
	Micros    int64  `json:"u,omitempty"`
	Unpriced  int64  `json:"p,omitempty"`
}

// spent adds a call, or several, to the sums of the tree: the totals, and those
// of the depth and the model, which stand in the same row, so that reading them
// costs the same however many calls there were.
func (st *treeStat) spent(l costLine) {
	st.calls, st.uncertain = st.calls+l.Calls, st.uncertain+l.Uncertain
	st.input, st.output, st.cached = st.input+l.Input, st.output+l.Output, st.cached+l.Cached
	st.cost, st.unpriced = st.cost+l.Micros, st.unpriced+l.Unpriced
	st.rawCosts = ""
	for i := range st.costs {
		have := &st.costs[i]
		full := i == maxCostLines-1
		if !full && (have.Depth != l.Depth || have.Model != l.Model) {
			continue
		}
		if full && (have.Depth != l.Depth || have.Model != l.Model) {
			have.Depth, have.Model = 0, OtherModels
		}
		have.Calls, have.Uncertain = have.Calls+l.Calls, have.Uncertain+l.Uncertain
		have.Input, have.Output, have.Cached = have.Input+l.Input, have.Output+l.Output, have.Cached+l.Cached
		have.Micros, have.Unpriced = have.Micros+l.Micros, have.Unpriced+l.Unpriced
		return
	}
	st.costs = append(st.costs, l)
}

func (st *treeStat) decodeCosts() error { return json.Unmarshal([]byte(st.rawCosts), &st.costs) }

// encodeCosts returns the lines as the row holds them.
func (st *treeStat) encodeCosts() (string, error) {
	if st.rawCosts != "" {
		return st.rawCosts, nil
	}
	if len(st.costs) == 0 {
		st.rawCosts = "[]"
		return st.rawCosts, nil
	}
	raw, err := json.Marshal(st.costs)
	st.rawCosts = string(raw)
	return st.rawCosts, err
}

func (st *treeStat) costLines() []CostLine {
	lines := make([]CostLine, len(st.costs))
	for i, l := range st.costs {
		lines[i] = CostLine{Depth: l.Depth, Model: l.Model, Usage: Usage{Calls: l.Calls, InputTokens: l.Input,
			OutputTokens: l.Output, CachedTokens: l.Cached, CostUSD: float64(l.Micros) / microsPerDollar,
			UnpricedCalls: l.Unpriced, UncertainCalls: l.Uncertain}}
	}
	return lines
}
