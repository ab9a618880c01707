// Package regression holds the regressions of a loop's iterations: how each is identified,
// and which of them count by settings, waivers and the false alarms that people marked.
//
// # From a change to a gate
//
// A regression passes through three folders, in this order: internal/detect reads the
// changed files, internal/verify compares the findings with the tests that ran, and loop,
// with its private parts in internal/loop, decides what to do.
//
//  1. Changed files. `perdure check` lists them with git
//     (internal/detect/gitdiff.Repository.Changes). A loop takes a snapshot after the agent's
//     turn (step loop.measure) and compares it with the trusted one, that of the baseline or
//     of the last approval (internal/verify/evidence.Versions).
//  2. Findings. internal/detect.Run builds a model of both versions of each file
//     (internal/detect/syntax.Read), matches tests and functions that moved or were renamed,
//     runs the detectors, one file for each type of finding, and returns an
//     internal/detect.Report. A finding blocks, warns, or is only listed, by its tier, its
//     confidence and the mode. Waivers remove findings.
//  3. Evidence. internal/verify/evidence.FindAgain and internal/verify/evidence.Waive remove
//     lost tests that were renamed or waived from the comparison of the test results.
//     internal/verify/evidence.Acting returns the findings that block, without those about
//     tests whose results are known. internal/verify/cleancheck.Check repeats the check in a
//     clean copy, and with the baseline's tests where the change weakened them.
//  4. Regressions. Step loop.judge reads the rules (Read), of the configuration and of the
//     project's settings file in the trusted snapshot, and collects a [Regression] for each
//     type: from findings (Signs), test results, coverage (internal/loop/metric.Meter.Compare),
//     protected files and the clean copy. Settle removes false alarms. The result is in the
//     record of the iteration (internal/loop/state.Outcome).
//  5. Decision. Without a regression, step loop.decide goes on or completes the loop. With
//     one, it goes to loop.diagnose, which names the cause, and then to loop.adapt, which
//     retries in another way, or to loop.escalate.
//  6. Gate. loop.escalate opens a gate with the regression, its evidence and the possible
//     answers. Step loop.waitForGate parks the loop until a person has decided.
package regression
