package bridge

import (
	"errors"

	"github.com/mcpbridge/bridge/bridge/again"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/translate"
)

// answer feeds an answer to the flow, once a request waits for what comes of it. It returns
// false when another process goes on with the call.
func (k *asker) answer(ev mrtr.Event) bool {
	if k.kept != nil && k.kept.Hold(ev) {
		return true
	}
	k.resume(ev)
	return !k.left.Load()
}

// elsewhere reports whether the client itself cannot be asked for in, be it that it
// declared nothing of the kind or that its revision has no words for this one. Then
// somebody else can, for the round was checked against all that was declared (C-33).
func (k *asker) elsewhere(in *mrtr.Input) bool {
	room := k.conv.asks()
	return room != nil && (in.Missing(k.own) != "" || room.Answers(in.Method, k.reach()) && k.wordless(in))
}

// wordless reports whether the client's revision, and no other, cannot express in.
func (k *asker) wordless(in *mrtr.Input) bool {
	_, err := k.conv.rules.InputRequest(in.Method, in.Params, k.own)
	unasked, ok := errors.AsType[*translate.Unexpressible](err)
	return ok && unasked.Older && unasked.Answer == nil
}

// settled notes that an inquiry is open no more; a zero question when it was not.
func (k *asker) settled(key string) (q again.Question) {
	if k.kept != nil {
		q = k.kept.Settled(key)
	}
	return q
}
