// Package policy judges tool calls of an agent: before a call by the table of risks, the
// configuration and the decisions of a person ([Policy]), and after a risky one by what
// it did to tests ([Before], [Evidence]). The transport of questions and answers, an
// agent's protocol or its hooks, is up to the caller.
//
// [Journal] stores the judgements of a loop in a file, so that they survive the process.
package policy
