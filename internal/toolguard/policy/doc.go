// Package policy judges an agent's calls of tools: before a call by the table of
// risks and what a configuration and a person say of it ([Policy]), and after a risky
// one by what it did to tests ([Before], [Evidence]). How calls are heard of, and how
// the answer gets back, is others' business: an agent's protocol, or its hooks.
//
// [Journal] keeps what was judged of a loop, so that it survives the loop's process.
package policy
