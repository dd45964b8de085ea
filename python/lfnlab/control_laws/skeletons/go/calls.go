// The calls of controller.h. To be changed only where more of them are wanted: then also in table.c.
package main

// #include <stdint.h>
// #include "controller.h"
import "C"

import (
	"runtime/cgo"
	"unsafe"
)

//export goCreate
func goCreate(config *C.struct_lfn_config) C.uintptr_t {
	return C.uintptr_t(cgo.NewHandle(create(config)))
}

//export goDestroy
func goDestroy(state C.uintptr_t) {
	cgo.Handle(state).Delete()
}

//export goAck
func goAck(state C.uintptr_t, ack, control unsafe.Pointer) {
	cgo.Handle(state).Value().(*mine).ack((*C.struct_lfn_ack)(ack), (*C.struct_lfn_control)(control))
}

//export goEvent
func goEvent(state C.uintptr_t, event C.uint32_t, control unsafe.Pointer) {
	cgo.Handle(state).Value().(*mine).event(event, (*C.struct_lfn_control)(control))
}

func main() {}
