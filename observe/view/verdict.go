package view

import (
	"fmt"
	"sync"

	"github.com/mcpbridge/bridge/observe"
)

// verdict is whom a diagnosis blamed for the wait of a question.
type verdict struct {
	who    string // "": nobody knows
	proven bool   // that it was right: the client is known to show such questions, or not to
}

// mostVerdicts bounds how many questions and calls are remembered.
const mostVerdicts = 2048

// verdicts remembers what was said of questions and calls when somebody looked last, for
// timelines and cards after their end. The latest are kept.
type verdicts struct {
	mu   sync.Mutex
	of   map[string]verdict
	ring [mostVerdicts]string
	next int
}

func (v *verdicts) get(key string) verdict {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.of[key]
}

func (v *verdicts) note(key string, said verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of == nil {
		v.of = map[string]verdict{}
	}
	if _, known := v.of[key]; !known {
		delete(v.of, v.ring[v.next])
		v.ring[v.next] = key
		v.next = (v.next + 1) % mostVerdicts
	}
	v.of[key] = said
}

func questionKey(session uint64, id string) string { return fmt.Sprint(session, " ", id) }

func callKey(mount, session, id string) string { return mount + " " + session + " " + id }

// noteAll remembers what is said of the questions of a session that are open.
func (v *verdicts) noteAll(s *session) {
	for i := range s.Flows {
		f := &s.Flows[i]
		if f.Waits != observe.ForClient || f.Late { // whom it waited for was said while it did
			continue
		}
		for _, q := range f.Questions {
			if !q.Asked || q.Answered {
				continue
			}
			who := f.Diagnosis.Who
			said := verdict{who, who != "person" || q.Proven || q.By != observe.ByClient}
			v.note(callKey(s.Mount, s.ID, f.ID), said)
			if q.By == observe.ByClient {
				v.note(questionKey(s.Number, q.ID), said)
			}
		}
	}
}
