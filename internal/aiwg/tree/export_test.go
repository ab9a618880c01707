package tree

import "reflect"

// Documents are the types of the documents that exports write.
func Documents() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[taskDoc](), reflect.TypeFor[metaDoc](), reflect.TypeFor[costDoc](),
		reflect.TypeFor[checkRef](), reflect.TypeFor[treeDoc](), reflect.TypeFor[treeMeta](), reflect.TypeFor[nodeDoc](),
		reflect.TypeFor[nodeColumns](), reflect.TypeFor[nodeCostDoc](), reflect.TypeFor[nodeTimesDoc](),
		reflect.TypeFor[nodeResultDoc](), reflect.TypeFor[nodeErrorDoc](), reflect.TypeFor[stateDoc](),
		reflect.TypeFor[historyDoc](), reflect.TypeFor[stateMeta](), reflect.TypeFor[variableDoc](),
		reflect.TypeFor[variableMeta](), reflect.TypeFor[mutationDoc](), reflect.TypeFor[mutationMeta](),
		reflect.TypeFor[checkDoc](), reflect.TypeFor[snapshotDoc]()}
}
