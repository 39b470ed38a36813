package downstream

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// ReplicaID is the number of a replica of the bridge among those that share a store, for as
// long as its process lives. It is drawn by lot, so it tells clients nothing, and the ids
// that clients get of questions, tasks and events hold it, so that any replica can tell whose
// they are. 0 stands for a bridge that shares nothing.
type ReplicaID uint32

// NewReplicaID draws a number that is free with a probability of all but one in a billion.
func NewReplicaID() ReplicaID {
	var b [4]byte
	_, _ = rand.Read(b[:])                                             // never fails
	return ReplicaID(binary.BigEndian.Uint32(b[:])|1<<30) &^ (1 << 31) // positive even as half of an int64, and never 0
}

// String returns it as eight hexadecimal digits.
func (id ReplicaID) String() string { return strconv.FormatUint(1<<32|uint64(id), 16)[1:] }

// QuestionID returns the id of a new server request, a JSON token: unguessable, so that
// no other session can answer it, and never used before (P-9).
func (id ReplicaID) QuestionID() jsonrpc.ID {
	return jsonrpc.ID(`"b-` + id.secret() + `"`)
}

// TaskID returns the id of a new task that the replica hosts, as unguessable.
func (id ReplicaID) TaskID() string { return id.secret() }

// secret returns what nobody can guess, and what ends in the replica's number.
func (id ReplicaID) secret() string {
	if id == 0 {
		return rand.Text()
	}
	return rand.Text() + "-" + id.String()
}

// AboutTasks reports whether a client's request is about tasks that began before it.
func AboutTasks(method string) bool {
	switch method {
	case mcp.MethodTasksGet, mcp.MethodTasksResult, mcp.MethodTasksCancel, mcp.MethodTasksList:
		return true
	}
	return false
}

// HomeOfTask returns the replica that hosts the task which a client's request is about, 0 when it
// names none.
func HomeOfTask(msg *jsonrpc.Message) ReplicaID {
	if !AboutTasks(msg.Method) {
		return 0
	}
	member := "taskId"
	if msg.Method == mcp.MethodTasksList {
		member = "cursor" // the id of a task
	}
	id, _ := rawjson.Text(rawjson.Get(msg.Params, member))
	return ReplicaOf(jsonrpc.ID(id))
}

// ReplicaOf returns the replica that a server request's id names, 0 when it names none.
func ReplicaOf(id jsonrpc.ID) ReplicaID {
	text := strings.Trim(string(id), `"`)
	replica, _ := ParseReplicaID(text[strings.LastIndexByte(text, '-')+1:])
	return replica
}

// ParseReplicaID reads what String has written.
func ParseReplicaID(digits string) (id ReplicaID, ok bool) {
	number, err := strconv.ParseUint(digits, 16, 31)
	if err != nil || len(digits) != 8 {
		return 0, false
	}
	return ReplicaID(number), true
}
