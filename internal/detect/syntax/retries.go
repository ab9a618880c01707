package syntax

import (
	"strconv"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// readRetries notes how often the test at i is repeated after a failure.
func (u *unit) readRetries(t *Test, i int) {
	for j := i; j >= 0; j = u.decls[j].parent {
		d := &u.decls[j]
		for _, a := range d.annotations {
			if rerunning()[a.name] {
				t.Again = max(t.Again, u.most(a.from, a.to))
			}
			for k := a.from; k < a.to; k++ {
				if u.at(k) == "retryAnalyzer" {
					t.Again = max(t.Again, often)
				}
			}
		}
		if !u.tests[j] && d.kind != declSuite {
			continue
		}
		for _, span := range u.spans(j) {
			t.Again = max(t.Again, u.retriesIn(span[0], span[1], u.firstStatement(d)))
		}
	}
	if u.lang.Name == "javascript" || u.lang.Name == "typescript" {
		for k := range u.tok {
			if u.at(k) == "retryTimes" && u.at(k-2) == "jest" {
				t.Again = max(t.Again, u.most(k, min(len(u.tok), k+4)))
			}
		}
	}
}

// often is the assumed number of repetitions if none is given.
const often = 3

// retriesIn returns the number in this.retries(20), or in { retry: 20 } or retry: 20 before the
// body.
func (u *unit) retriesIn(from, to, body int) int {
	found := 0
	for k := from; k < to; k++ {
		if s := u.at(k); s != "retries" && s != "retry" || u.kindAt(k) != lex.Word {
			continue
		}
		if next := u.at(k + 1); (next == ":" && k < body || next == "(" && u.at(k-1) == "." && u.at(k-2) == "this") &&
			u.kindAt(k+2) == lex.Number {
			found = max(found, u.most(k, k+3))
		}
	}
	return found
}

// most returns the largest number among some tokens, or often.
func (u *unit) most(from, to int) int {
	found := -1
	for k := from; k < to; k++ {
		if u.kindAt(k) == lex.Number {
			if n, err := strconv.Atoi(u.at(k)); err == nil {
				found = max(found, n)
			}
		}
	}
	if found < 0 {
		return often
	}
	return found
}

// rerunning are annotations that repeat a failed test.
var rerunning = sync.OnceValue(wordSet("flaky retry Retry RetryFact RetryTheory RetryTest RetryingTest " +
	"RepeatedIfExceptionsTest RetryOnFailure RetryOnException Flaky FlakyTest reruns"))
