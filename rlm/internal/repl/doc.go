// Package repl documents the folder of the REPL of recursive runs, in which a model writes
// code over a context that is too large for it.
//
// The packages work in this order:
//
//   - turn parses a reply of the model into blocks of code and a final answer, and writes
//     what the model is shown;
//   - engine runs the blocks; engine/python and engine/starlark implement it;
//   - record keeps what each block did;
//   - trajectory reads and writes runs in the format of the reference implementation.
//
// Package rlm drives them: it asks the model, makes sub-calls tasks, and takes interrupted
// blocks up again.
package repl
