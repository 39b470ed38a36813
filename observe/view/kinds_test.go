package view

import (
	"testing"

	"github.com/mcpbridge/bridge/observe"
)

func TestEveryKindOfQuestionHasItsWords(t *testing.T) {
	for k := range observe.Kinds {
		if words := wordsOf(k); words.asked == "" || (words.answers == "") != k.AsksPerson() {
			t.Errorf("%s: %+v", k, words)
		}
	}
}
