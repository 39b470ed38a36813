package translate

import (
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

const cancelAnswer = `{"action":"cancel"}`

// elicitationAnswer keeps of a user's answer what the modern result has: the
// action, and the content of an accepted form (C.9, C-29).
func (r Rules) elicitationAnswer(params, result []byte) ([]byte, error) {
	action, _ := rawjson.Text(rawjson.Get(result, "action"))
	switch action {
	case "accept":
	case "decline", "reject": // the latter is a pre-release spelling
		return []byte(`{"action":"decline"}`), nil
	case "cancel":
		return []byte(cancelAnswer), nil
	default:
		return nil, &BadAnswer{Reason: "it has no known action"}
	}
	content := rawjson.Get(result, "content")
	if content == nil || elicitationMode(params) != "form" {
		return []byte(`{"action":"accept"}`), nil
	}
	if rawjson.KindOf(content) != rawjson.Object {
		return nil, &BadAnswer{Reason: "content is no object"}
	}
	content, err := r.formAnswer(params, content)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(content)+32), `{"action":"accept","content":`...)
	return append(append(out, content...), '}'), nil
}

// formAnswer brings a form's content up: null members go, and the booleans that
// stand for a multi-select become its array again (C.5).
func (r Rules) formAnswer(params, content []byte) ([]byte, error) {
	var multis []multiSelect
	if !r.Version.AtLeast(mcp.V20251125) {
		form := multiSelects(rawjson.Get(params, "requestedSchema"))
		if form.large {
			return nil, &BadAnswer{Reason: "it is to a question that could not be asked"}
		}
		multis = form.fields
	}
	if len(multis) == 0 && !hasNull(content) {
		return content, nil
	}
	owned := map[string]bool{} // whether it was asked
	for i := range multis {
		owned[multis[i].name] = false // but its options
		for _, field := range multis[i].fields {
			owned[field] = true
		}
	}
	answers := map[string]bool{}
	var kept members
	for name, value := range rawjson.Members(content) {
		kind := rawjson.KindOf(value)
		asked, owned := owned[string(name)]
		switch {
		case kind == rawjson.Null:
		case !owned:
			kept.put(string(name), value)
		case asked && (kind == rawjson.True || kind == rawjson.False):
			answers[string(name)] = kind == rawjson.True
		default: // a choice all the same, perhaps
			return nil, &BadAnswer{Reason: "an option is answered with something that is no boolean", AskAgain: true}
		}
	}
	for i := range multis {
		array, present, err := multis[i].collapse(answers)
		if err != nil {
			return nil, err
		}
		if present {
			kept.put(multis[i].name, array)
		}
	}
	return kept.object(), nil
}

func hasNull(obj []byte) bool {
	for _, value := range rawjson.Members(obj) {
		if rawjson.KindOf(value) == rawjson.Null {
			return true
		}
	}
	return false
}
