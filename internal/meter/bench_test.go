package meter

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkFirstByte measures the time to the first byte of a streamed answer, by turns
// with and without the meter. The request has 64 KiB, as those of agents have.
func BenchmarkFirstByte(b *testing.B) {
	p := newProvider(b, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n")
	})
	m := start(b, p.URL)
	direct, through := m.address(Chat, true)
	body := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("word ", 64<<10/5) + `"}]}`
	client := plainClient(b)
	first := func(address string) time.Duration {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, address, strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		resp, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
			b.Fatal(err)
		}
		took := time.Since(began)
		_, _ = io.Copy(io.Discard, resp.Body)
		return took
	}
	var without, with []time.Duration
	for b.Loop() {
		without = append(without, first(direct))
		with = append(with, first(through))
		<-m.exchanges
	}
	slices.Sort(without)
	slices.Sort(with)
	at := func(list []time.Duration, percent int) float64 {
		return float64(list[len(list)*percent/100].Microseconds())
	}
	for _, percent := range []int{50, 95} {
		name := map[int]string{50: "p50-µs", 95: "p95-µs"}[percent]
		b.ReportMetric(at(without, percent), "direct-"+name)
		b.ReportMetric(at(with, percent), "metered-"+name)
		b.ReportMetric(at(with, percent)-at(without, percent), "added-"+name)
	}
}
