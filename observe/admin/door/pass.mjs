// Keeps the pass that the token was exchanged for, and sends it along. It stays in the
// storage of this tab, which belongs to scheme, host and port: a cookie would be sent to
// whatever else listens on a port of this machine.
const name = "mcp-bridge-admin-pass";

export const pass = () => sessionStorage.getItem(name);
export const keep = (value) => sessionStorage.setItem(name, value);
export const forget = () => sessionStorage.removeItem(name);

// ask fetches from the bridge with the pass.
export function ask(address, options = {}) {
  const headers = pass() ? { ...options.headers, Authorization: `Bearer ${pass()}` } : options.headers;
  return fetch(address, { ...options, headers });
}

// A new tab asks those that are open, which are of the same origin.
const tabs = new BroadcastChannel(name);
let hear;
tabs.addEventListener("message", ({ data }) => {
  if (data !== "pass?") hear?.(data);
  else if (pass()) tabs.postMessage(pass());
});

// askTabs has told called with the pass of the first tab that has one.
export function askTabs(told) {
  hear = (value) => {
    hear = undefined;
    told(value);
  };
  tabs.postMessage("pass?");
}
