// The OAuth side of the legacy client: an application that reads challenges, authorizes at once without a person, and tries again.
// It uses an up-to-date OAuth library on top of the old transport, so that what the suite judges is what the bridge lets through.
import { auth, computeScopeUnion, extractWWWAuthenticateParams } from '@modelcontextprotocol/client';

const REDIRECT = 'http://localhost:3000/callback';
const MAX_ATTEMPTS = 3;

/** An in-memory OAuthClientProvider whose user agrees at once. */
class Provider {
  clientMetadataUrl = 'https://conformance-test.local/client-metadata.json';
  clientMetadata = {
    client_name: 'legacy-conformance-client',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
  };
  redirectUrl = REDIRECT;
  #client;
  #tokens;
  #verifier;
  /** What the last authorization response carried: code and, when the server sends one, iss. */
  granted;

  constructor({ client_id, client_secret } = {}) {
    if (client_id) this.#client = { client_id, client_secret };
  }
  clientInformation = () => this.#client;
  saveClientInformation = (client) => void (this.#client = client);
  tokens = () => this.#tokens;
  saveTokens = (tokens) => void (this.#tokens = tokens);
  saveCodeVerifier = (verifier) => void (this.#verifier = verifier);
  codeVerifier = () => this.#verifier;
  invalidateCredentials = (what) => {
    if (what === 'all' || what === 'client') this.#client = undefined;
    if (what === 'all' || what === 'tokens') this.#tokens = undefined;
  };

  async redirectToAuthorization(url) {
    const response = await fetch(url, { redirect: 'manual' });
    await response.body?.cancel();
    const { searchParams } = new URL(response.headers.get('location'));
    this.granted = { authorizationCode: searchParams.get('code'), iss: searchParams.get('iss') ?? undefined };
  }
}

/** Where clients without metadata sign in, at the root of the server (2025-03-26). */
const FALLBACK = ['/authorize', '/token', '/register'];

/**
 * A fetch for which the bridge stands under the server's own name, as a proxy in front of both would have it: the endpoint, metadata and the
 * places of clients without metadata are the bridge's; whatever else the server has on its origin, its own sign-in for one, is its own.
 */
export function standingIn(serverUrl, bridge) {
  const { origin, pathname } = new URL(serverUrl);
  const isBridges = (path) => path === pathname || path.startsWith('/.well-known/') || FALLBACK.includes(path);
  return (input, init) => {
    const url = new URL(input);
    return fetch(url.origin === origin && isBridges(url.pathname) ? new URL(url.pathname + url.search, bridge) : url, init);
  };
}

/** A fetch for the legacy transport that answers 401 and 403 by authorizing for the resource at `serverUrl`, over another fetch. */
export function authorizingFetch(serverUrl, context, fetchFn) {
  const provider = new Provider(context);
  let scopes;
  return async (input, init) => {
    for (let attempt = 1; ; attempt++) {
      const headers = new Headers(init?.headers);
      const token = provider.tokens()?.access_token;
      if (token) headers.set('authorization', `Bearer ${token}`);
      const response = await fetchFn(input, { ...init, headers });
      const challenged = response.status === 401 || response.status === 403;
      if (!challenged || !response.headers.has('www-authenticate') || attempt > MAX_ATTEMPTS) return response;
      await response.body?.cancel();
      const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response);
      if (scope) scopes = computeScopeUnion(scopes, scope);
      await authorize(provider, { serverUrl, resourceMetadataUrl, scope: scopes, forceReauthorization: response.status === 403, fetchFn });
    }
  };
}

async function authorize(provider, options) {
  const first = await auth(provider, options);
  if (first !== 'REDIRECT') return;
  const result = await auth(provider, { ...options, ...provider.granted });
  if (result !== 'AUTHORIZED') throw new Error(`authorization ended as ${result}`);
}
