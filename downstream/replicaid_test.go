package downstream

import (
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
)

func TestATaskNamesItsHome(t *testing.T) {
	home := NewReplicaID()
	task, alone := home.TaskID(), ReplicaID(0).TaskID()
	for _, tt := range []struct {
		method, params string
		want           ReplicaID
	}{
		{"tasks/get", `{"taskId":"` + task + `"}`, home},
		{"tasks/result", `{"taskId":"` + task[:26] + `\u002d` + task[27:] + `"}`, home},
		{"tasks/cancel", `{"_meta":{},"taskId":"` + task + `"}`, home},
		{"tasks/list", `{"cursor":"` + task + `"}`, home},
		{"tasks/list", `{}`, 0},
		{"tasks/list", ``, 0},
		{"tasks/get", `{"taskId":"` + alone + `"}`, 0},
		{"tasks/get", `{"taskId":7}`, 0},
		{"tools/call", `{"taskId":"` + task + `"}`, 0},
	} {
		if got := HomeOfTask(&jsonrpc.Message{Method: tt.method, Params: []byte(tt.params)}); got != tt.want {
			t.Errorf("%s %s is about a task of %v, want %v", tt.method, tt.params, got, tt.want)
		}
	}
}
