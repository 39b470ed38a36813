package mrtr

import "github.com/mcpbridge/bridge/rawjson"

// rememberURL notes a consent, so that the same question asked again can be
// answered without a second prompt (C-31).
func (f *Flow) rememberURL(in *Input) {
	url, message, ok := in.url()
	if !ok || string(rawjson.Get(in.Response, "action")) != `"accept"` {
		return
	}
	f.URLs = append(f.URLs, URLMemory{URL: url, Message: message, ElicitationID: in.ElicitationID, Announced: in.Announced})
}

// recallURLs answers repeated URL questions from memory and returns the
// highest number of repeats. After urlRepeats the user is asked again.
func (f *Flow) recallURLs() (repeats int) {
	for i := range f.Inputs {
		in := &f.Inputs[i]
		memory := f.consent(in)
		if memory == nil {
			continue
		}
		if memory.Repeats == urlRepeats {
			f.forget(memory)
			continue
		}
		memory.Repeats++
		repeats = max(repeats, memory.Repeats)
		in.Asked, in.Response = true, []byte(`{"action":"accept"}`)
	}
	return repeats
}

func (f *Flow) consent(in *Input) *URLMemory {
	url, message, ok := in.url()
	if !ok {
		return nil
	}
	for i := range f.URLs {
		if m := &f.URLs[i]; m.URL == url && m.Message == message {
			return m
		}
	}
	return nil
}

func (f *Flow) forget(memory *URLMemory) {
	for i := range f.URLs {
		if &f.URLs[i] == memory {
			f.URLs = append(f.URLs[:i], f.URLs[i+1:]...)
			return
		}
	}
}

// completedURLs takes out of memory, and returns, the interactions that a
// round without an error no longer asks for (C-32).
func (f *Flow) completedURLs(asked []Input, raw []byte) (completed []string) {
	if len(f.URLs) == 0 || isError(raw) {
		return nil
	}
	still := urls(asked)
	kept := f.URLs[:0]
	for _, memory := range f.URLs {
		switch {
		case still[memory.URL]:
			kept = append(kept, memory)
		case !memory.Announced:
			completed = append(completed, memory.ElicitationID)
		}
	}
	f.URLs = kept
	return completed
}

// onAnnounced notes that the URL interaction called elicitationID is over. The client
// is told once (I-11).
func (f *Flow) onAnnounced(elicitationID string) Action {
	if elicitationID == "" {
		return Action{}
	}
	told := Action{Do: Tell, Completed: []string{elicitationID}}
	for i := range f.Inputs {
		if in := &f.Inputs[i]; in.ElicitationID == elicitationID && in.Response == nil && !in.Announced {
			in.Announced = true
			return told
		}
	}
	for i := range f.URLs {
		if m := &f.URLs[i]; m.ElicitationID == elicitationID && !m.Announced {
			m.Announced = true
			return told
		}
	}
	return Action{}
}

// urls has those that are asked for. Each input is read once: there may be many consents.
func urls(asked []Input) map[string]bool {
	all := make(map[string]bool, len(asked))
	for i := range asked {
		if url, _, ok := asked[i].url(); ok {
			all[url] = true
		}
	}
	return all
}

// Identify gives a URL question the elicitationId that 2025-11-25 requires and
// 2026-07-28 no longer has (C-27): the server's own if params carry one
// (I-2), else a fresh one from mint. The question's id belongs into the event Asked.
func Identify(params []byte, mint func() string) (identified []byte, elicitationID string) {
	if id, ok := rawjson.Name(rawjson.Get(params, "elicitationId")); ok {
		return params, id
	}
	id := mint()
	return rawjson.Apply(nil, params, rawjson.Edit{Name: "elicitationId", Value: rawjson.AppendQuote(nil, id)}), id
}
