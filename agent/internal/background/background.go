// Package background waits for the commands that an agent has left running when its turn ended.
package background

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/model"
)

// DefaultLimit is how long commands in the background are waited for.
const DefaultLimit = 2 * time.Minute

// pollInterval is how often it is checked whether they have ended.
const pollInterval = 200 * time.Millisecond

// maxNamed is how many commands a text names, maxLine how much of each, in bytes.
const (
	maxNamed = 3
	maxLine  = 80
)

// Commands finds the commands of an agent that run in the background.
type Commands struct {
	// shells lists the shells below the agent.
	shells func() map[int]string
	// before are those that were there before the turn, such as servers of tools.
	before map[int]string
}

// Begin records what runs below a process before a turn.
func Begin(pid int) *Commands {
	c := &Commands{shells: func() map[int]string { return guard.Shells(pid) }}
	c.before = c.shells()
	return c
}

// Running returns the commands that run, in the order in which they began.
func (c *Commands) Running() []string {
	now := c.shells()
	maps.DeleteFunc(now, func(pid int, line string) bool { return c.before[pid] == line })
	var lines []string
	for _, pid := range slices.Sorted(maps.Keys(now)) {
		lines = append(lines, now[pid])
	}
	return lines
}

// Wait waits until none runs, at most for a limit. It calls tell before it waits, and returns those
// that were still running in the end.
func (c *Commands) Wait(ctx context.Context, limit time.Duration, tell func(text string)) (left string) {
	if left = c.Text(); left == "" || limit <= 0 {
		return left
	}
	tell(fmt.Sprintf("waiting at most %s for %s", limit, left))
	over := time.NewTimer(limit)
	defer over.Stop()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for left != "" {
		select {
		case <-ctx.Done():
			return left
		case <-over.C:
			return left
		case <-poll.C:
			left = c.Text()
		}
	}
	return ""
}

// Text returns the commands that run, for people; empty without any.
func (c *Commands) Text() string {
	lines := c.Running()
	if len(lines) == 0 {
		return ""
	}
	return human.Count(int64(len(lines)), "background command") + " of the agent: " + named(lines)
}

// named returns a text with the first commands.
func named(lines []string) string {
	var texts []string
	for _, line := range lines[:min(len(lines), maxNamed)] {
		line, _ = model.Clean(line)
		texts = append(texts, model.Redact(clip.Bytes(clip.OneLine(line), maxLine)))
	}
	if more := len(lines) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}
