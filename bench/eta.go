package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
)

// etaShape is a run of the ETA benchmark.
type etaShape struct {
	name        string
	files       int
	lines       int // of each file
	args        []string
	concurrency int
}

// forecast: the remaining time that is shown after a tenth of the calls against the real one,
// of runs of the program with a model that answers each request after the same time.
func forecast(b *bench, round int) error {
	const delay = 200 * time.Millisecond
	program, err := b.program(b.dir)
	if err != nil {
		return err
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // the answer does not depend on it
		<-time.After(delay)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"seven"}}],`+
			`"usage":{"prompt_tokens":100,"completion_tokens":1,"total_tokens":101}}`)
	}))
	defer server.Close()
	const line = 40 // bytes; 1,000 tokens are 100 lines
	var shapes []etaShape
	for _, n := range []int{1, 8} {
		shapes = append(shapes,
			etaShape{"flat, 100 parts", 1, 10_000, []string{"--max-children", "200", "--merge", "concatenate"}, n},
			etaShape{"three levels, 96 parts", 1, 9_600, []string{"--max-children", "5", "--merge", "summarize"}, n},
			etaShape{"12 files, 72 parts", 12, 600, []string{"--merge", "summarize"}, n},
			etaShape{"map-reduce, 60 parts", 1, 6_000, []string{"--strategy", "map-reduce", "--max-children", "100"}, n})
	}
	for i, s := range shapes {
		values, err := s.measure(b, program, server.URL, filepath.Join(b.dir, strconv.Itoa(round), strconv.Itoa(i)))
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		err = b.print("eta", fmt.Sprintf("%s, concurrency %d, each call %s", s.name, s.concurrency, delay), round, values)
		if err != nil {
			return err
		}
	}
	return nil
}

// measure runs the program once.
func (s *etaShape) measure(b *bench, program, url, dir string) (map[string]any, error) {
	for i := range s.files {
		var text strings.Builder
		for k := range s.lines {
			fmt.Fprintf(&text, "line %06d of file %02d without a meaning\n", k, i)
		}
		name := filepath.Join(dir, "text", fmt.Sprintf("%02d.txt", i))
		err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text.String()), 0o600))
		if err != nil {
			return nil, err
		}
	}
	init := exec.CommandContext(b.ctx, program, "init")
	init.Dir = dir
	if out, err := init.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("init: %w: %s", err, out)
	}
	cmd := exec.CommandContext(b.ctx, program, append([]string{"run", "How many lines have a meaning?", "-c", "text",
		"--planner", "split", "--model", "openai:constant", "--base-url", url + "/v1", "--chunk-tokens", "1000",
		"--overlap", "0", "--concurrency", strconv.Itoa(s.concurrency)}, s.args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "OPENAI_API_KEY=none")
	var printed strings.Builder
	cmd.Stdout, cmd.Stderr = &printed, &printed
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	store, err := perdure.Open(b.ctx, perdure.Config{Dir: filepath.Join(dir, ".perdure")})
	if err != nil {
		return nil, errors.Join(err, cmd.Wait())
	}
	defer store.Close()
	samples, err := watchForecast(b.ctx, store)
	if wait := cmd.Wait(); err == nil && wait != nil {
		err = fmt.Errorf("%w: %s", wait, printed.String())
	}
	if err != nil {
		return nil, err
	}
	return compareForecast(samples)
}

type etaSample struct {
	at    time.Time
	calls int64
	left  *float64
}

// watchForecast reads the progress of the only tree until it ended.
func watchForecast(ctx context.Context, store *perdure.Store) (samples []etaSample, err error) {
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for range every.C {
		trees, err := store.Trees(ctx, perdure.TreeFilter{})
		if err != nil {
			return nil, err
		}
		if len(trees) == 0 {
			continue // it reads its files
		}
		p, err := store.Progress(ctx, trees[0].ID)
		if err != nil {
			return nil, err
		}
		samples = append(samples, etaSample{time.Now(), p.Usage.Calls, p.ETASeconds})
		if p.State.Terminal() {
			return samples, nil
		}
	}
	return samples, nil
}

// compareForecast compares the first forecast after a tenth of the calls.
func compareForecast(samples []etaSample) (map[string]any, error) {
	end := samples[len(samples)-1]
	for _, x := range samples {
		if x.left == nil || 10*x.calls < end.calls {
			continue
		}
		left := end.at.Sub(x.at).Seconds()
		return map[string]any{"calls": end.calls, "forecast_s": rounded(*x.left), "real_s": rounded(left),
			"ratio": rounded(max(*x.left/left, left / *x.left))}, nil
	}
	return nil, errors.New("there was no forecast")
}
