//go:build race

package starlark

// dataPerHeap is larger than without the race detector, which needs several bytes for each one of
// the program.
const dataPerHeap = 16
