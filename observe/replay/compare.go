package replay

import (
	"fmt"
	"strconv"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/rawjson"
)

// compare says where an answer differs from the recorded one.
func compare(was, is *jsonrpc.Message) []string {
	d := &differences{}
	switch {
	case was.Error != nil && is.Error != nil:
		if was.Error.Code != is.Error.Code {
			d.add("error.code", strconv.Itoa(was.Error.Code), strconv.Itoa(is.Error.Code))
		}
		d.text("error.message", quoted(was.Error.Message), quoted(is.Error.Message))
		d.value("error.data", was.Error.Data, is.Error.Data)
	case was.Error != nil:
		d.add("the answer", fmt.Sprintf("error %d", was.Error.Code), "a result")
	case is.Error != nil:
		d.add("the answer", "a result", fmt.Sprintf("error %d %s", is.Error.Code, short(quoted(is.Error.Message))))
	default:
		d.value("result", was.Result, is.Result)
	}
	return d.found
}

func quoted(text string) []byte { return rawjson.AppendQuote(nil, text) }

// differences collects at most maxDifferences.
type differences struct{ found []string }

const (
	maxDifferences = 20
	maxShown       = 80 // bytes of a value
)

func (d *differences) add(path, was, is string) {
	switch len(d.found) {
	case maxDifferences:
		d.found = append(d.found, "and more")
	default:
		if len(d.found) < maxDifferences {
			d.found = append(d.found, fmt.Sprintf("%s: was %s, is %s", path, was, is))
		}
	}
}

func short(v []byte) string {
	if v == nil {
		return "absent"
	}
	if len(v) > maxShown {
		return string(v[:maxShown]) + "…"
	}
	return string(v)
}

func (d *differences) value(path string, was, is []byte) {
	switch kind := rawjson.KindOf(was); {
	case was == nil && is == nil:
	case was == nil || is == nil || kind != rawjson.KindOf(is):
		d.add(path, short(was), short(is))
	case kind == rawjson.Object:
		d.object(path, was, is)
	case kind == rawjson.Array:
		d.array(path, was, is)
	case kind == rawjson.String:
		d.text(path, was, is)
	default:
		if !rawjson.Equal(was, is) {
			d.add(path, short(was), short(is))
		}
	}
}

// text compares strings. Of those that were redacted only that they are there: their
// lengths differ from run to run.
func (d *differences) text(path string, was, is []byte) {
	if kind := placeholder(was); kind != "" && kind == placeholder(is) || rawjson.Equal(was, is) {
		return
	}
	d.add(path, short(was), short(is))
}

func (d *differences) object(path string, was, is []byte) {
	for name, value := range rawjson.Members(was) {
		if string(name) == "requestState" { // differs each time
			if !rawjson.Has(is, "requestState") {
				d.add(path+".requestState", "present", "absent")
			}
			continue
		}
		d.value(path+"."+string(name), value, rawjson.Get(is, string(name)))
	}
	for name, value := range rawjson.Members(is) {
		if !rawjson.Has(was, string(name)) {
			d.add(path+"."+string(name), "absent", short(value))
		}
	}
}

func (d *differences) array(path string, was, is []byte) {
	var before, now [][]byte
	for v := range rawjson.Elements(was) {
		before = append(before, v)
	}
	for v := range rawjson.Elements(is) {
		now = append(now, v)
	}
	for i := range max(len(before), len(now)) {
		var a, b []byte
		if i < len(before) {
			a = before[i]
		}
		if i < len(now) {
			b = now[i]
		}
		d.value(path+"["+strconv.Itoa(i)+"]", a, b)
	}
}
