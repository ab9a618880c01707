package outline

import (
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// span is a time from and to, in microseconds.
type span struct{ from, to int64 }

// timeline sums up when calls ran and tasks ended, in steps of the same length.
func (v *view) timeline() client.ReportTimeline {
	line := client.ReportTimeline{Of: "calls", Steps: []client.ReportStep{}}
	spans := v.calls
	if len(spans) == 0 {
		line.Of, spans = "tasks", v.leaves()
	}
	start, end := v.extent(spans)
	if end <= start {
		return line
	}
	n := int64(maxBuckets)
	width := max((end-start+n-1)/n, 1)
	n = (end - start + width - 1) / width
	line.Start, line.StepSeconds = time.UnixMicro(start).UTC(), float64(width)/1e6
	line.Steps = make([]client.ReportStep, n)
	at := func(us int64) *client.ReportStep { return &line.Steps[min(max((us-start)/width, 0), n-1)] }
	for _, s := range spans {
		spread(line.Steps, s, start, width)
	}
	for _, t := range v.tasks {
		switch t.state {
		case perdure.Completed:
			at(t.ended).Completed++
		case perdure.Failed:
			at(t.ended).Failed++
		case perdure.Queued, perdure.Running, perdure.Waiting, perdure.Cancelled: // has no outcome to show
		}
	}
	return line
}

// spread adds a span to the steps it touches, by the part of each it covers.
func spread(steps []client.ReportStep, s span, start, width int64) {
	for us := s.from; us < s.to; {
		i := (us - start) / width
		if i < 0 || i >= int64(len(steps)) {
			return
		}
		next := min(start+(i+1)*width, s.to)
		steps[i].Running += float64(next-us) / float64(width)
		us = next
	}
}

// leaves returns the times in which tasks without children ran.
func (v *view) leaves() []span {
	var spans []span
	for _, t := range v.tasks {
		if t.started == 0 || len(t.children) > 0 {
			continue
		}
		end := t.ended
		if end == 0 {
			end = v.now
		}
		spans = append(spans, span{t.started, end})
	}
	return spans
}

// extent returns the first start and the last end.
func (v *view) extent(spans []span) (start, end int64) {
	grow := func(from, to int64) {
		if from != 0 && (start == 0 || from < start) {
			start = from
		}
		end = max(end, to)
	}
	for _, t := range v.tasks {
		from := t.started
		if from == 0 {
			from = t.ended // an imported task without a start time
		}
		grow(from, max(from, t.ended))
	}
	for _, s := range spans {
		grow(s.from, s.to)
	}
	return start, end
}
