// Package model answers sampling requests with a model behind an HTTP API, for
// clients that have none.
//
// Two APIs are known, which most vendors and local servers speak: OpenAI's chat
// completions and Anthropic's messages. A Model turns the params of
// sampling/createMessage into a request of the API, and its response into the result.
// The server that asked is a stranger: what it may cost is bounded here, and nothing
// of the vendor's errors but their kind reaches it.
package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/rawjson"
)

// Settings say which model answers.
type Settings struct {
	Provider string            // OpenAI or Anthropic
	URL      string            // of the API without the path of a call; empty: the vendor's own
	Model    string            // asked for unless a hint of the server's is in Models
	Models   map[string]string // a part of a hint's name, and the model that it stands for
	Key      string            // sent as the API wants it; empty: none
	// MaxTokens bounds what one answer may have, whatever the server asks for.
	MaxTokens int
	// PerSession and PerDay bound how many requests a session, and all of them in 24
	// hours, may make, of which the last eighth is for tenants that made less than an eighth;
	// 0: no bound.
	PerSession, PerDay int
	// Timeout bounds one request.
	Timeout time.Duration
}

// The providers.
const (
	OpenAI    = "openai"
	Anthropic = "anthropic"
)

// maxResponse bounds what is read of an API's response, in bytes.
const maxResponse = 16 << 20

// Model answers sampling requests. It is safe for concurrent use.
type Model struct {
	settings Settings
	api      api
	http     *http.Client
	day      allowance
}

// api is one vendor's way to ask.
type api interface {
	// request makes the HTTP request's path, headers and body.
	request(s *Settings, model string, p *params) (path string, header http.Header, body any, err error)
	// response reads the body of a 200. model is who was asked, in case it does not say.
	response(body []byte, model string) (*result, error)
}

// transport is of all models.
var transport = http1.DefaultTransport()

// New returns a model.
func New(s Settings) (*Model, error) {
	m := &Model{settings: s, day: allowance{limit: s.PerDay, window: 24 * time.Hour}}
	switch s.Provider {
	case OpenAI:
		m.api = openAI{}
	case Anthropic:
		m.api = anthropic{}
	default:
		return nil, fmt.Errorf("unknown provider %q; there are %s and %s", s.Provider, OpenAI, Anthropic)
	}
	if m.settings.URL == "" {
		m.settings.URL = map[string]string{OpenAI: "https://api.openai.com/v1", Anthropic: "https://api.anthropic.com"}[s.Provider]
	}
	m.http = &http.Client{
		Transport:     transport,
		Timeout:       s.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the key goes nowhere else
	}
	return m, nil
}

// Failure says why the model gave no answer, in words for the person who made the
// call. It holds nothing of the request, of the response or of the key.
type Failure struct {
	Reason string
	Err    error // for the log; may be nil
}

// Error returns the reason.
func (f *Failure) Error() string { return f.Reason }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Sample answers one sampling/createMessage of a tenant, "" when nobody knows whose it is, for the
// session that spent counts for. What it takes is charged to held, and released by whoever has
// done with the answer. The error is a *Failure.
func (m *Model) Sample(ctx context.Context, raw []byte, tenant string, spent *Spent, held *budget.Hold) ([]byte, error) {
	p, err := read(raw, held)
	if err != nil {
		return nil, err
	}
	if !spent.take(m.settings.PerSession) {
		return nil, &Failure{Reason: fmt.Sprintf("this session has used up its %d sampling requests (sampling.per-session)", m.settings.PerSession)}
	}
	switch ok, others := m.day.take(tenant); {
	case others:
		return nil, &Failure{Reason: fmt.Sprintf("with these credentials, or from this address, too many of the %d sampling requests of this day were made: the last are for others (sampling.per-day)", m.settings.PerDay)}
	case !ok:
		return nil, &Failure{Reason: fmt.Sprintf("the %d sampling requests of this day are used up (sampling.per-day)", m.settings.PerDay)}
	}
	if most := whole(m.settings.MaxTokens); p.MaxTokens <= 0 || most > 0 && p.MaxTokens > most {
		p.MaxTokens = most
	}
	model := m.choose(p.ModelPreferences.Hints)
	path, header, body, err := m.api.request(&m.settings, model, p)
	if err != nil {
		return nil, &Failure{Reason: err.Error()}
	}
	text, err := m.post(ctx, path, header, body, held)
	if err != nil {
		return nil, err
	}
	if err := held.Grow(values(text) * valueCost); err != nil {
		return nil, short(err)
	}
	res, err := m.api.response(text, model)
	if err != nil {
		return nil, &Failure{Reason: "the model's API answered something that is no message", Err: err}
	}
	return json.Marshal(res)
}

// choose maps the server's hints, best first, to a configured model.
func (m *Model) choose(hints []hint) string {
	for _, h := range hints {
		best := ""
		for part := range m.settings.Models {
			if strings.Contains(h.Name, part) && len(part) > len(best) {
				best = part
			}
		}
		if best != "" {
			return m.settings.Models[best]
		}
	}
	return m.settings.Model
}

func (m *Model) post(ctx context.Context, path string, header http.Header, body any, held *budget.Hold) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, &Failure{Reason: "the sampling request cannot be sent", Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(m.settings.URL, "/")+path, bytes.NewReader(text))
	if err != nil {
		return nil, &Failure{Reason: "the model's API has no usable URL (sampling.url)", Err: err}
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	req.GetBody = nil // a request that may cost money is never repeated
	resp, err := m.http.Do(req)
	if err != nil {
		return nil, unreachable(err)
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(&meter{io.LimitReader(resp.Body, maxResponse+1), held})
	switch {
	case budget.Short(err):
		return nil, short(err)
	case err != nil:
		return nil, unreachable(err)
	case resp.StatusCode != http.StatusOK:
		return nil, refused(resp.StatusCode)
	case len(text) > maxResponse:
		return nil, &Failure{Reason: "the model's answer is too long"}
	}
	return text, nil
}

// How often a request is there, as it came, read, and as the API wants it, and a response, with
// the buffer that it grows in, and as the client gets it.
const requestParts, responseParts = 3, 3

// valueCost is what an element of an array is charged for besides its text, in bytes: what it is once
// read, in an array that grows, and what it becomes. A block of two bytes takes about 400.
const valueCost = 512

// values counts the elements of all arrays in a text, or more: commas and openings of arrays.
func values(text []byte) (n int) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = rawjson.End(text, i) - 1
		case ',', '[':
			n++
		}
	}
	return n
}

// read decodes the params of a request, which held is charged for first. The error is a *Failure.
func read(raw []byte, held *budget.Hold) (*params, error) {
	if err := held.Grow(requestParts*len(raw) + values(raw)*valueCost); err != nil {
		return nil, &Failure{Reason: "there is no room for the server's sampling request: " + err.Error(), Err: err}
	}
	var p params
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, &Failure{Reason: "the server's sampling request cannot be read", Err: err}
	}
	return &p, nil
}

// meter charges a response while it is read.
type meter struct {
	io.Reader
	held *budget.Hold
}

// Read implements io.Reader. The error may be one of budget.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if short := m.held.Grow(responseParts * n); short != nil {
		return 0, short
	}
	return n, err
}

func short(err error) error {
	return &Failure{Reason: "the model's answer was not taken in: " + err.Error(), Err: err}
}

func unreachable(err error) error {
	var slow interface{ Timeout() bool }
	if errors.As(err, &slow) && slow.Timeout() {
		return &Failure{Reason: "the model did not answer in time (sampling.timeout)", Err: err}
	}
	return &Failure{Reason: "the model's API cannot be reached (sampling.url)", Err: err}
}

func refused(status int) error {
	reason := fmt.Sprintf("the model's API answered with status %d", status)
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		reason = "the model's API does not accept the key (sampling.key-file)"
	case http.StatusNotFound:
		reason = "the model's API does not know the model or the address (sampling.model, sampling.url)"
	case http.StatusTooManyRequests:
		reason = "the model's API refuses more requests for now: a rate limit or a quota"
	case http.StatusRequestEntityTooLarge:
		reason = "the sampling request is too long for the model"
	}
	return &Failure{Reason: reason, Err: fmt.Errorf("status %d", status)}
}
