package price_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model/price"
)

var update = flag.Bool("update", false, "write the built-in table")

// catalogue returns the built-in table as charm.land/catwalk has it: the models
// of the providers that have an address.
func catalogue() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Models of charm.land/catwalk %s\n", price.TableVersion)
	seen := make(map[string]bool)
	for _, p := range embedded.GetAll() {
		at := price.Address(p.APIEndpoint)
		switch p.ID { //nolint:exhaustive // the others have addresses, or cannot be asked
		case catwalk.InferenceProviderOpenAI:
			at = "api.openai.com"
		case catwalk.InferenceProviderAnthropic:
			at = "api.anthropic.com"
		case catwalk.InferenceProviderGemini: // its address for the OpenAI protocol
			at = "generativelanguage.googleapis.com/v1beta/openai"
		}
		if at == "" || seen[at] {
			continue
		}
		seen[at] = true
		fmt.Fprintf(&b, "@%s\n", at)
		for _, m := range p.Models {
			fmt.Fprintf(&b, "%s\t%v\t%v\t%v\t%v\t%d\t%d\n", m.ID, m.CostPer1MIn, m.CostPer1MOut,
				m.CostPer1MInCached, m.CostPer1MOutCached, m.ContextWindow, m.DefaultMaxTokens)
		}
	}
	return b.String()
}

// TestTable holds the built-in table against the package that it is from.
func TestTable(t *testing.T) {
	t.Parallel()
	want := catalogue()
	if *update {
		if err := os.WriteFile("table.txt", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, price.BuiltInTable()); diff != "" {
		t.Errorf("the table is of another version (go test ./model/price -update writes it):\n%s", diff)
	}
}

// Every entry of the table is found.
func TestEveryEntry(t *testing.T) {
	t.Parallel()
	found, at := 0, ""
	table := price.New(price.Config{})
	_, lines, _ := strings.Cut(price.BuiltInTable(), "\n")
	for line := range strings.Lines(lines) {
		line = strings.TrimSuffix(line, "\n")
		if address, ok := strings.CutPrefix(line, "@"); ok {
			at = "https://" + address + "/v1"
			continue
		}
		id, rest, _ := strings.Cut(line, "\t")
		r, err := table.Rate("openai:"+id, at)
		if err != nil || r.Source == "" || !strings.HasPrefix(rest, fmt.Sprintf("%v\t%v\t", r.Input, r.Output)) {
			t.Errorf("%s: %+v, %v, want %s", line, r, err, rest)
		}
		found++
	}
	if found < 1000 {
		t.Errorf("%d models, want over 1,000", found)
	}
}
