package detect_test

import (
	"strings"
	"testing"
)

// A test is replaced by one of another subject that the same change adds.
func TestOverwritten(t *testing.T) {
	t.Parallel()
	const (
		desk = "class Desk:\n    def lend(self, code):\n        self.loans[code] = PERIOD\n\n" +
			"    def give_back(self, code, day):\n        return fee(day - self.loans.pop(code))\n"
		extend = "\n    def extend(self, code):\n        self.loans[code] += PERIOD\n"
		head   = "def test_lend(desk):\n    desk.lend('HA0001')\n    assert desk.loans['HA0001'] == 14\n\n\n"
		late   = "def test_give_back_late(desk):\n    desk.lend('PO0007')\n" +
			"    assert desk.give_back('PO0007', 20) == Decimal('8.00')\n"
		longer = "def test_give_back_extended(desk):\n    desk.lend('PO0007')\n    desk.extend('PO0007')\n" +
			"    assert desk.give_back('PO0007', 20) == Decimal('0.00')\n"
	)
	python := map[string]string{"src/desk.py": desk, "tests/test_desk.py": head + late}
	wantPatterns(t, "a test of what is new instead",
		changes(python, map[string]string{"src/desk.py": desk + extend, "tests/test_desk.py": head + longer}),
		"act test-removed")
	wantPatterns(t, "a test of what is new besides",
		changes(python, map[string]string{"src/desk.py": desk + extend, "tests/test_desk.py": head + late + "\n\n" +
			longer}), "")
	wantPatterns(t, "renamed, with a step more", changes(python, map[string]string{
		"src/desk.py": desk + extend,
		"tests/test_desk.py": head + strings.NewReplacer("late", "after_the_period", "    assert",
			"    desk.extend('HA0001')\n    assert").Replace(late),
	}), "")
	wantPatterns(t, "renamed with the function", changes(python, map[string]string{
		"src/desk.py":        strings.ReplaceAll(desk, "give_back", "take_back"),
		"tests/test_desk.py": head + strings.NewReplacer("give_back", "take_back", "8.00", "8.50").Replace(late),
	}), "")

	const (
		queue = "export class Queue {\n  push(job) {\n    this.jobs.push(job);\n  }\n\n  async drain(job) {\n    try {\n" +
			"      await job.run();\n      return true;\n    } catch (err) {\n      if (this.last || err.fatal) {\n" +
			"        this.onDead(job, err);\n        return false;\n      }\n      await this.sleep(100);\n    }\n  }\n}\n"
		option = "export class Queue {\n  constructor({ fatal = false }) {\n    this.fatal = fatal;\n  }\n\n  push(job) {\n" +
			"    this.jobs.push(job);\n  }\n\n  async drain(job) {\n    return this.fatal ? false : await job.run();\n  }\n}\n"
		first = "test('repeats', async () => {\n  assert.equal(await drain({ run: once }), 2);\n});\n"
		fatal = "test('does not repeat fatal errors', async () => {\n  queue.push({ run: () => { throw Object.assign(new " +
			"Error('bad'), { fatal: true }); } });\n  assert.equal(await queue.drain(), 0);\n});\n"
		urgent = "test('runs urgent jobs first', async () => {\n  queue.push({ run: () => seen.push('late') });\n" +
			"  queue.push({ priority: 5, run: () => seen.push('soon') });\n  assert.deepEqual(seen, ['soon', 'late']);\n});\n"
		last = "test('closes', () => {\n  assert.equal(queue.close(), true);\n});\n"
	)
	script := map[string]string{"lib/queue.js": queue, "test/queue.test.js": first + fatal + last}
	asksNot := strings.Replace(strings.Replace(queue, " || err.fatal", "", 1), "this.jobs.push(job)",
		"this.jobs.splice(rank(job), 0, job)", 1)
	wantPatterns(t, "made into another, and a check is gone",
		changes(script, map[string]string{"lib/queue.js": asksNot, "test/queue.test.js": first + urgent + last}),
		"warn guard-removed, act test-removed")
	wantPatterns(t, "taken out with the check",
		changes(script, map[string]string{"lib/queue.js": asksNot, "test/queue.test.js": first + last}),
		"warn guard-removed, act test-removed")
	script["lib/queue.js"] = option
	wantPatterns(t, "made into another, and an option is gone", changes(script, map[string]string{
		"lib/queue.js": strings.NewReplacer("{ fatal = false }", "{}", "    this.fatal = fatal;\n", "",
			"this.fatal ? false : ", "").Replace(option),
		"test/queue.test.js": first + urgent + last,
	}), "warn test-removal-explained")
}
