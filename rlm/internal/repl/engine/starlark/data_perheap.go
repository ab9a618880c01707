//go:build !race

package starlark

// dataPerHeap is how much memory the process may have for each byte that the code may use.
const dataPerHeap = 2
