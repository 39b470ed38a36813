// Package jsonout writes JSON objects as encoding/json would write structs of the same
// members, without looking at types: records of calls are written on the way of every
// question.
package jsonout

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/mcpbridge/bridge/rawjson"
)

// Object is a JSON object that is being written, and what is to stand behind it.
type Object struct{ text []byte }

// objects are in memory that is used again: records are made for as long as a call waits.
var objects = sync.Pool{New: func() any { return new(Object) }}

// mostRoom bounds what stays in memory of what large objects took.
const mostRoom = 64 << 10

// Begin returns an object without members. Whoever has no more use for its text calls Release.
func Begin() *Object {
	o := objects.Get().(*Object)
	o.text = append(o.text[:0], '{')
	return o
}

// End ends the object.
func (o *Object) End() { o.text = append(o.text, '}') }

// Behind writes what follows the object's end, as it is.
func (o *Object) Behind(text ...byte) { o.text = append(o.text, text...) }

// Text returns what was written, until Release.
func (o *Object) Text() []byte { return o.text }

// Release gives the memory of the object back.
func (o *Object) Release() {
	if cap(o.text) <= mostRoom {
		objects.Put(o)
	}
}

func (o *Object) name(name string) {
	if c := o.text[len(o.text)-1]; c != '{' && c != '[' {
		o.text = append(o.text, ',')
	}
	o.text = append(append(append(o.text, '"'), name...), '"', ':')
}

// String writes a member, unless it is empty.
func (o *Object) String(name, value string) {
	if value != "" {
		o.Always(name, value)
	}
}

// Always writes a member even if it is empty.
func (o *Object) Always(name, value string) {
	o.name(name)
	o.text = rawjson.AppendQuote(o.text, value)
}

// Bytes writes a member in base64, unless it is empty.
func (o *Object) Bytes(name string, value []byte) {
	if len(value) > 0 {
		o.name(name)
		o.text = append(base64.StdEncoding.AppendEncode(append(o.text, '"'), value), '"')
	}
}

// Raw writes a member that is JSON already, unless it is empty.
func (o *Object) Raw(name string, value []byte) {
	if len(value) > 0 {
		o.name(name)
		o.text = append(o.text, value...)
	}
}

// True writes a member, unless it is false.
func (o *Object) True(name string, value bool) {
	if value {
		o.name(name)
		o.text = append(o.text, "true"...)
	}
}

// Int writes a number, unless it is 0.
func (o *Object) Int(name string, value int64) {
	if value != 0 {
		o.name(name)
		o.text = strconv.AppendInt(o.text, value, 10)
	}
}

// Uint writes a number, unless it is 0.
func (o *Object) Uint(name string, value uint64) {
	if value != 0 {
		o.name(name)
		o.text = strconv.AppendUint(o.text, value, 10)
	}
}

// Float writes a number, unless it is 0.
func (o *Object) Float(name string, value float64) {
	if value != 0 {
		o.name(name)
		o.text = strconv.AppendFloat(o.text, value, 'g', -1, 64)
	}
}

// Object writes a member that is an object.
func (o *Object) Object(name string, write func(*Object)) {
	o.name(name)
	o.text = append(o.text, '{')
	write(o)
	o.text = append(o.text, '}')
}

// List writes n objects, unless there are none.
func (o *Object) List(name string, n int, write func(o *Object, i int)) {
	if n == 0 {
		return
	}
	o.name(name)
	o.text = append(o.text, '[')
	for i := range n {
		if i > 0 {
			o.text = append(o.text, ',')
		}
		o.text = append(o.text, '{')
		write(o, i)
		o.text = append(o.text, '}')
	}
	o.text = append(o.text, ']')
}

// Any writes what is too rare to be spelled out.
func (o *Object) Any(name string, value any) error {
	text, err := json.Marshal(value)
	if err == nil {
		o.name(name)
		o.text = append(o.text, text...)
	}
	return err
}
