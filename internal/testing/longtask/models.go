package longtask

import (
	"encoding/json"
	"fmt"
	"strings"
)

const (
	// Chunk is how many lines the root asks about in one sub-call.
	Chunk = 20
	// Turns is how many replies the root needs.
	Turns = 4
)

// instruction begins the prompts of sub-calls.
const instruction = "Label each line as number, person, place or thing. Reply with a JSON list of labels."

// Sub is the sub-model: it replies to a prompt with the labels of its lines.
func Sub(prompt string) string {
	labels := []string{}
	for line := range strings.Lines(prompt) {
		if label, ok := Infer(line); ok {
			labels = append(labels, label.String())
		}
	}
	data, _ := json.Marshal(labels) // a list of strings
	return string(data)
}

// Calls returns how many sub-calls the root makes for so many lines.
func Calls(lines int64) int64 { return (lines + Chunk - 1) / Chunk }

// NestedCalls is Calls for a root that divides the lines among REPLs of their own: the
// requests for their code are counted too.
func NestedCalls(lines int64) (n int64) {
	size := (lines + shares - 1) / shares
	for ; lines > 0; lines -= size {
		n += 1 + Calls(min(lines, size))
	}
	return n
}

// shares is how many REPLs a nested root uses.
const shares = 3

// Root is the root model: it returns the code of a turn, from 1. The second turn ends with an
// exception, and the third one corrects it. A nested root asks REPLs of their own about shares
// of the lines, with rlm_query_batched; [Child] is what they run.
func Root(q Question, turn int, nested bool) string {
	switch turn {
	case 1:
		return probe
	case 2:
		return fmt.Sprintf(choose, Date(q.From), Date(q.To), userLiteral(q))
	case 3:
		if nested {
			return fmt.Sprintf(divide, shares, instruction)
		}
		return fmt.Sprintf(ask, Chunk, instruction)
	default:
		return fmt.Sprintf(conclude, q.Label, q.Other, q.Kind)
	}
}

// Child is the code of a REPL whose context is a share of the lines.
func Child() string { return fmt.Sprintf(child, Chunk, instruction) }

func userLiteral(q Question) string {
	if q.User < 0 {
		return ""
	}
	return User(q.User)
}

const probe = `import json
import re

line_form = re.compile(r'^(\d{4}-\d\d-\d\d) \| (\w+) \| (.+)$', re.M)
rows = [m.groups() for m in line_form.finditer(context)]
print(f'{len(context):,} characters, {len(rows)} rows; the first: {rows[0]!r}')`

const choose = `first, last, only = '%s', '%s', '%s'
chosen = [r for r in rows if first <= r[0] <= last and (not only or r[1] == only)]
print(f'{len(chosen)} of {len(rows)} rows')
print(chosen[0]['date'] if chosen else {}['date'])`

const ask = `size = %d
parts = [chosen[i:i + size] for i in range(0, len(chosen), size)]
prompts = ['%s\n' + '\n'.join(' | '.join(r) for r in part) for part in parts]
labels = []
for part, reply in zip(parts, llm_query_batched(prompts) if prompts else []):
    try:
        found = json.loads(reply)
    except ValueError as e:
        raise RuntimeError(f'reply is not JSON: {reply[:80]}') from e
    assert len(found) == len(part), (len(found), len(part))
    labels.extend(found)
print(f'{len(labels)} labels of {len(parts)} sub-calls')`

const divide = `size = -(-len(chosen) // %d)
parts = [chosen[i:i + size] for i in range(0, len(chosen), size or 1)]
labels = []
replies = await rlm_query_batched(['%s\n' + '\n'.join(' | '.join(r) for r in part) for part in parts])
for n, (part, reply) in enumerate(zip(parts, replies)):
    found = json.loads(reply)
    print(f'share {n + 1}: {len(found)} of {len(part)}')
    labels += found
assert len(labels) == len(chosen), replies`

const child = `import json

lines, size = context.splitlines()[1:], %d
prompts = ['\n'.join(['%s', *lines[i:i + size]]) for i in range(0, len(lines), size)]
FINAL(json.dumps([label for reply in llm_query_batched(prompts) for label in json.loads(reply)]))`

const conclude = `names = ['number', 'person', 'place', 'thing']
counts = {n: labels.count(n) for n in names}
label, other, kind = '%s', '%s', '%s'
if kind == 'count':
    result = counts[label]
elif kind == 'most':
    result = max(names, key=lambda n: counts[n])
elif kind == 'least':
    result = min(names, key=lambda n: counts[n])
elif kind == 'compare':
    a, b = counts[label], counts[other]
    result = 'more' if a > b else 'fewer' if a < b else 'equal'
else:
    having = sorted({r[1] for r, l in zip(chosen, labels) if l == label})
    result = ','.join(f'{a}-{b}' for i, a in enumerate(having) for b in having[i + 1:]) or 'none'
answer['content'] = str(result)
answer['ready'] = True`
