// Package corpus is the folder of the packages that read the context of a run.
//
// Package walk reads the files, folders and globs that the user names: package charset
// recognises and converts encodings, notebook reads the cells of notebooks, and preprocess
// runs the user's commands for other formats. Package pack stores their text as one
// sequence of bytes with a manifest. Package boundary finds the places where text can be
// cut, and package chunk divides the pack there into chunks that fit a model.
// Package index finds passages of the pack by their words. Package packtest makes packs for tests.
package corpus
