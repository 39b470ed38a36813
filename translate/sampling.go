package translate

import (
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// sampling brings a sampling request down (C.7).
func (r Rules) sampling(params, caps []byte) ([]byte, error) {
	r.HostTasks, r.WrapOutput, r.RejectTool = false, false, nil
	w := newWalker(&r, mcp.MethodSamplingCreateMessage, params)
	defer w.release()
	tools := r.Version.AtLeast(mcp.V20251125) && rawjson.Has(rawjson.Get(caps, "sampling"), "tools")
	if reason := w.sampling(tools); reason != "" {
		return nil, &Unexpressible{Reason: reason, Older: reason == noSamplingAudio}
	}
	return w.bytes()
}

const (
	noSamplingTools = "the upstream server asked for sampling with tools, which the connected client does not support (it needs MCP 2025-11-25 with the capability sampling.tools)"
	noSamplingAudio = "the upstream server asked for sampling with audio, which the client's protocol version 2024-11-05 does not have"
	badSampling     = "the upstream server's sampling request is malformed"
	largeSampling   = "the upstream server's sampling request is too large for the client's protocol version, which has one block in a message"
)

// maxRepeated bounds, in bytes, what the messages of one request repeat where they
// are split: all that each has besides its blocks.
const maxRepeated = 16 << 20

func (w *walker) sampling(tools bool) (reason string) {
	messages := false
	o := enterObject(w.src, skipSpace(w.src, 0))
	for o.next() {
		switch string(o.key) {
		case "messages":
			if o.kind() != rawjson.Array {
				return badSampling
			}
			messages = true
			if o.m.end, reason = w.samplingMessages(o.m.val, tools); reason != "" {
				return reason
			}
		case "tools":
			if !tools || o.kind() != rawjson.Array {
				return noSamplingTools
			}
			o.m.end = w.list(o.m.val, (*walker).tool)
		case "toolChoice":
			if !tools {
				return noSamplingTools
			}
		case "_meta", "task": // neither is part of an input request
			w.drop(o.done())
		}
	}
	w.prune(0)
	if !messages {
		return badSampling
	}
	return ""
}

func (w *walker) samplingMessages(at int, tools bool) (end int, reason string) {
	mark, room := len(w.drops), maxRepeated
	a := enterArray(w.src, at)
	for a.next() {
		if a.kind() != rawjson.Object {
			return 0, badSampling
		}
		edits, drops := len(w.edits), len(w.drops)
		var content member
		if content, reason = w.samplingMessage(&a, tools); reason != "" {
			return 0, reason
		}
		if content.end == 0 || w.rules.Version.AtLeast(mcp.V20251125) {
			continue
		}
		// Before 2025-11-25 a message has one block.
		blocks := arrayLen(w.src, content.val)
		repeated := max(blocks-1, 0) * (a.m.end - a.m.start - (content.end - content.val))
		if room -= repeated; room < 0 {
			return 0, largeSampling
		}
		size := a.m.end - a.m.start + repeated
		if !w.lend(size) || !w.needs(size) { // the message with its edits, and what becomes of it
			break
		}
		from := w.splitMessage(a.m, edits)
		w.edits, w.drops = w.edits[:edits], w.drops[:drops]
		if len(w.text) == from {
			w.drop(a.m)
		} else {
			w.putText(a.m.start, a.m.end, from)
		}
		w.lend(-size)
	}
	w.prune(mark)
	return a.end, ""
}

// samplingMessage enters the current message. content is its content when that
// is an array.
func (w *walker) samplingMessage(a *array, tools bool) (content member, reason string) {
	mark := len(w.drops)
	o := enterObject(w.src, a.m.val)
	for o.next() {
		switch string(o.key) {
		case "_meta":
			if w.cut.icons { // defined as late as icons are: 2025-11-25
				w.drop(o.done())
			}
		case "content":
			switch o.kind() {
			case rawjson.Object:
				o.m.end, reason = w.samplingBlock(o.m.val, tools)
			case rawjson.Array:
				if o.m.end, reason = w.samplingBlocks(o.m.val, tools); reason == "" {
					content = o.m
				}
			default:
				reason = badSampling
			}
			if reason != "" {
				return member{}, reason
			}
		}
	}
	a.m.end = o.end
	w.prune(mark)
	return content, ""
}

func (w *walker) samplingBlocks(at int, tools bool) (end int, reason string) {
	a := enterArray(w.src, at)
	for a.next() {
		if a.kind() != rawjson.Object {
			return 0, badSampling
		}
		if a.m.end, reason = w.samplingBlock(a.m.val, tools); reason != "" {
			return 0, reason
		}
	}
	return a.end, ""
}

// samplingBlock enters one content block of a message. Model input that cannot
// be expressed fails the request: leaving it out would change what is asked.
func (w *walker) samplingBlock(at int, tools bool) (end int, reason string) {
	mark, typ := len(w.drops), ""
	var out output
	o := enterObject(w.src, at)
	for o.next() {
		switch string(o.key) {
		default:
			w.anyBlock(&o, &typ)
		case "content":
			if o.kind() == rawjson.Array && tools {
				o.m.end = w.blocks(o.m.val)
				out.content = o.m
			}
		case "structuredContent":
			out.structured = o.done()
		}
	}
	switch typ {
	case "text", "image":
	case "audio":
		if !w.rules.Version.AtLeast(mcp.V20250326) {
			return 0, noSamplingAudio
		}
	case "tool_use", "tool_result":
		if !tools {
			return 0, noSamplingTools
		}
		if typ == "tool_result" {
			w.output(&o, mark, &out)
		}
	default:
		return 0, badSampling
	}
	w.prune(mark)
	return o.end, ""
}

// splitMessage writes the message at m as consecutive messages of the same role, one
// per block of its content array, in order. Its edits are those from one of w.edits on.
// What stands around the content is found once, and repeated for each block: then the
// work is no more than what is written, which is bounded.
func (w *walker) splitMessage(m member, edits int) (from int) {
	message := w.part(m.start, m.end, edits)
	o := enterObject(message, 0)
	for o.next() && string(o.key) != "content" {
	}
	content := o.done()
	from = len(w.text)
	for block := range rawjson.Elements(message[content.val:content.end]) {
		if len(w.text) > from {
			w.text = append(w.text, ',')
		}
		w.text = append(append(append(w.text, message[:content.val]...), block...), message[content.end:]...)
	}
	return from
}

// part returns src[start:end] with the edits made of it, the first of which is the
// one of that index or a later one.
func (w *walker) part(start, end, first int) []byte {
	sub := walker{src: w.src[start:end], text: w.text}
	for _, e := range w.edits[first:] {
		if e.start >= start && e.end <= end {
			sub.edits = append(sub.edits, edit{e.start - start, e.end - start, e.from, e.to})
		}
	}
	b, _ := sub.bytes() // nobody is told, so nothing is refused
	return b
}
