// Package testing is the folder of the packages that only tests import.
//
// Package effort sets the number of rounds of tests, and testenv the environment of a
// test process. Package testdb creates the databases of tests. Package statetest
// compares variables and checkpoints with a model of them, and schematest validates
// documents against the published JSON Schemas. Package doctest compares generated parts of
// documents. Package modelserver plays a model for real agents. Package longtask generates
// tasks over long contexts, with the models that solve them. Package replyserver answers
// requests to models with prepared bytes.
package testing
