package config

import (
	"time"
)

// Default returns the configuration that holds when nothing is set. It lacks an
// upstream, so it does not pass Validate.
func Default() Config {
	return Config{
		Listen:        "127.0.0.1:8080",
		ProxyProtocol: "off",
		HTTP:          "lean",
		Park:          "on",
		HeapFloor:     32 << 20,
		HugePages:     "on",
		Admin:         Admin{Payloads: "off", Actions: "off"},
		Metrics:       Metrics{Tools: "off"},
		Log:           Log{Level: "info", Format: "auto"},
		Store:         Store{URL: "memory:", Durability: "strict", Journal: "on", Outage: "wait", Unload: time.Minute},
		Mount:         Mount{Path: "/mcp", Policy: defaultPolicy()},
	}
}

func defaultPolicy() Policy {
	return Policy{
		Profile:       "strict",
		NonObject:     "wrap",
		MultiSelect:   "expand",
		Tasks:         "hide",
		Modern:        "pass",
		Authorization: "relay",
		Auth: Auth{
			Mode: "relay", Grant: "auto", Store: "auto", ClientName: "MCP Bridge", Token: "access", PKCE: "listed", Wait: 45 * time.Second, Share: "no",
		},
		LegacyRelay:  "auto",
		CommandMode:  "shared",
		Session:      "optional",
		Draft:        "auto",
		DraftAnswers: "bare",
		Legacy:       Legacy{AlwaysStream: "off"},
		Questions:    Questions{Policy: "error", Open: "auto", Wait: 20 * time.Second},
		Sampling:     Sampling{Provider: "off", Approve: "off", MaxTokens: 4096, PerSession: 100, PerDay: 10_000, Timeout: 2 * time.Minute},
		Timeouts: Timeouts{
			Connect:       10 * time.Second,
			Discover:      15 * time.Second,
			Start:         25 * time.Second,
			Ping:          30 * time.Second,
			Round:         2 * time.Minute,
			Flow:          30 * time.Minute,
			ServerRequest: 10 * time.Minute,
			Grace:         time.Minute,
			Commit:        2 * time.Second,
			KeepAlive:     15 * time.Second,
			PollPause:     500 * time.Millisecond,
			Heartbeat:     15 * time.Second,
			Write:         10 * time.Second,
			SessionIdle:   30 * time.Minute,
			Retention:     5 * time.Minute,
			Drain:         30 * time.Second,
			Handover:      time.Hour,
		},
		Rates: Rates{Session: "off", Principal: "off", Address: "off"},
		Limits: Limits{
			MessageSize:     4 << 20,
			ResponseSize:    16 << 20,
			Sessions:        10_000,
			Flows:           32,
			Rounds:          20,
			StateOnlyRounds: 10,
			RequestState:    1 << 20,
			Streams:         16,
			Events:          256,
			EventBytes:      1 << 20,
			Pending:         64,
			Declaration:     64 << 10,
			Subscriptions:   256,
			Listens:         1024,
			InFlight:        256,
			Concurrency:     4096,
			Children:        32,
			Batch:           64,
		},
	}
}
