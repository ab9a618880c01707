// Package toolguard is the folder of the packages that judge the tool calls of coding
// agents.
//
// Package permit makes the rules by which an agent runs commands without asking.
// Package vendorhook receives a call from an agent's hook and returns the answer.
// Package risk assesses the call by a published table of rules. Package policy judges
// it by that risk, the configuration and the answers of people, and compares the tests
// before and after a risky call. Package approval keeps the calls of agents without a loop
// that wait for a person. Package agentconfig installs the hook in the configuration of
// agents.
package toolguard
