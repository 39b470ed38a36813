// What the fixture server saw and did. Tests read it over the admin port, so that an answer is proven to have
// reached the server instead of being believed from the client's result.

/** Calls and HTTP requests in the order of their arrival, side effects by name, and gates that hold a call open. */
export class Record {
  requests = [];
  calls = [];
  effects = {};
  #gates = new Map();
  #nextRequest = 1;
  #nextCall = 1;

  request(fields) {
    const entry = { n: this.#nextRequest++, closed: false, closedEarly: false, status: 0, ...fields };
    this.requests.push(entry);
    return entry;
  }

  /** Opens the record of one handler run. A retry is a run of its own: its `answers` say what came back. */
  call(name, args, ctx) {
    const { inputResponses, requestState, envelope, signal, id, method, _meta } = ctx.mcpReq;
    const call = {
      n: this.#nextCall++,
      id,
      method,
      name,
      args: args ?? {},
      answers: inputResponses ?? null,
      state: requestState() ?? null,
      envelope: envelope ?? null,
      meta: _meta ?? null,
      outcome: 'running',
    };
    this.calls.push(call);
    signal.addEventListener('abort', () => {
      if (call.outcome === 'running') call.outcome = 'cancelled';
    });
    return call;
  }

  /** Counts a side effect. Tests assert that a cancelled call leaves none. */
  effect(name) {
    this.effects[name] = (this.effects[name] ?? 0) + 1;
  }

  gate(label) {
    if (!this.#gates.has(label)) {
      let open;
      const opened = new Promise((resolve) => (open = resolve));
      this.#gates.set(label, { opened, open });
    }
    return this.#gates.get(label);
  }

  /** Wraps a handler so that its run, its end and its cancellation are recorded. */
  tracked(name, handler) {
    return async (args, ctx) => {
      const call = this.call(name, args, ctx);
      try {
        const result = await handler(args, ctx, call);
        if (call.outcome === 'running') {
          call.outcome = result.resultType === 'input_required' ? 'input_required' : 'completed';
        }
        return result;
      } catch (error) {
        if (call.outcome === 'running') call.outcome = ctx.mcpReq.signal.aborted ? 'cancelled' : 'failed';
        throw error;
      }
    };
  }

  snapshot() {
    return { requests: this.requests, calls: this.calls, effects: this.effects };
  }
}

/** Resolves when the promise does; rejects as soon as the call is cancelled. */
export function unlessAborted(promise, signal) {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(new Error('cancelled'));
    signal.addEventListener('abort', () => reject(new Error('cancelled')), { once: true });
    promise.then(resolve, reject);
  });
}
