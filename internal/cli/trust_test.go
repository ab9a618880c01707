package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/cli/env"
)

// hostile returns a project whose settings file runs a program as the model.
func hostile(t *testing.T) *project {
	t.Helper()
	p := newProject(t)
	p.write(".perdure/config.yaml", "model: \"exec:sh -c 'touch ran; echo answer'\"\n")
	return p
}

func (p *project) exists(name string) bool {
	_, err := os.Stat(p.dir + "/" + name)
	return err == nil
}

// TestTrustIsAsked: at a terminal the user sees what would act and decides; yes is
// remembered, no is not.
func TestTrustIsAsked(t *testing.T) {
	t.Parallel()
	p := hostile(t)
	p.width = 100
	for _, answer := range []string{"n\n", "\n", "", "nonsense\n"} {
		p.stdin = strings.NewReader(answer)
		_, stderr := p.run(env.StatusUsage, "run", "x")
		if !strings.Contains(stderr, "model: exec:sh -c") || !strings.Contains(stderr, "[y/N]") {
			t.Errorf("%q: not asked:\n%s", answer, stderr)
		}
		if p.exists("ran") {
			t.Fatalf("%q: the program ran", answer)
		}
	}
	p.stdin = strings.NewReader("y\n")
	if stdout, _ := p.run(0, "run", "x"); !strings.Contains(stdout, "answer") || !p.exists("ran") {
		t.Errorf("trusted, and not run:\n%s", stdout)
	}
	p.stdin = strings.NewReader("")
	if _, stderr := p.run(0, "run", "x"); strings.Contains(stderr, "[y/N]") {
		t.Errorf("asked again:\n%s", stderr)
	}
	p.write(".perdure/config.yaml", "model: exec:other\n")
	if _, stderr := p.run(env.StatusUsage, "run", "x"); !strings.Contains(stderr, "model: exec:other") {
		t.Errorf("a change is not shown:\n%s", stderr)
	}
}

// TestTrustKeepsTheRestOfTheInput: the question reads one line of standard input.
func TestTrustKeepsTheRestOfTheInput(t *testing.T) {
	t.Parallel()
	p := hostile(t)
	p.write(".perdure/config.yaml", "model: exec:cat\n")
	p.width, p.stdin = 100, strings.NewReader("yes\nthe context\n")
	if stdout, _ := p.run(0, "run", "x", "--context", "-"); !strings.Contains(stdout, "the context") {
		t.Errorf("printed %q", stdout)
	}
}
