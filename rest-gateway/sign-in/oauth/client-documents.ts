import { OPERATOR } from "#accounts/identity";
import { isJsonObject, parseJsonExactly } from "#runtime/json";
import { makeSafeFetch } from "#runtime/safe-fetch";
import { readClientMetadata } from "./client-metadata.ts";
import type { ClientStore, OAuthClient } from "./client-store.ts";
import { OAuthError } from "./oauth-error.ts";

/** Finds a client by its id; if the id is an address, reads its document. */
type FindClient = (id: string) => Promise<OAuthClient | null>;

type FetchDocument = ReturnType<typeof makeSafeFetch>;

const MAX_DOCUMENT_BYTES = 64 * 1024;
const MIN_SECONDS = 300;
const MAX_SECONDS = 86_400;

/** Fetches a document, but never from this machine or its network, since anybody can choose the addresses. */
const fetchPublic = makeSafeFetch({ providerUrl: "https://public.invalid", allowsPrivateNetwork: false });

type DocumentOptions = {
  readonly store: Pick<ClientStore, "findClient" | "register">;
  readonly isEnabled: boolean;
  /** Called before a document is fetched; throws for a caller that causes too many. */
  readonly limit: () => Promise<void>;
  readonly fetchDocument?: FetchDocument;
};

/**
 * Makes the lookup of clients with metadata documents: the `client_id` is the https address of a document about the application, which
 * need not register. It is kept as long as its server says, between five minutes and a day.
 */
export function makeFindClient({ store, isEnabled, limit, fetchDocument = fetchPublic }: DocumentOptions): FindClient {
  return async (id) => {
    const known = await store.findClient(id);
    if (known?.is_fresh) return known;
    if (!isEnabled || !isDocumentAddress(id)) return null;
    await limit();
    const { document, seconds } = await fetchClientDocument(id, fetchDocument);
    if (document.client_id !== id) throw unreadable("its client_id is not its own address");
    const metadata = readClientMetadata(document, "none");
    if (metadata.auth_method !== "none") throw unreadable("it names a secret, which it cannot have");
    const fresh_until = new Date(Date.now() + seconds * 1000);
    return (await store.register({ ...metadata, id, registration: "document", fresh_until }, OPERATOR)).client;
  };
}

function isDocumentAddress(id: string): boolean {
  const url = URL.parse(id);
  return (
    url?.protocol === "https:" &&
    url.href === id &&
    url.pathname !== "/" &&
    url.username === "" &&
    url.password === "" &&
    !id.includes("#")
  );
}

async function fetchClientDocument(address: string, fetchDocument: FetchDocument) {
  const response = await fetchDocument(address, {
    method: "GET",
    headers: { accept: "application/json" },
    body: undefined,
    redirect: "manual",
  }).catch((cause: Error) => {
    throw Object.assign(unreadable("it cannot be fetched"), { cause });
  });
  const type = response.headers.get("content-type") ?? "";
  if (response.status !== 200) throw unreadable(`its server responds with ${response.status}`);
  if (!/^application\/(?:[\w.-]+\+)?json\b/i.test(type)) throw unreadable("it is not JSON");
  const text = await response.text();
  if (text.length > MAX_DOCUMENT_BYTES) throw unreadable("it is too long");
  const maxAge = Number(/\bmax-age=(\d{1,9})\b/.exec(response.headers.get("cache-control") ?? "")?.[1] ?? 3_600);
  return { document: parseDocument(text), seconds: Math.min(MAX_SECONDS, Math.max(MIN_SECONDS, maxAge)) };
}

function parseDocument(text: string): Readonly<Record<string, unknown>> {
  try {
    const document = parseJsonExactly(text);
    if (isJsonObject(document)) return document;
  } catch {
    // The error is reported below.
  }
  throw unreadable("it is not a JSON object");
}

function unreadable(why: string): OAuthError {
  return new OAuthError("invalid_client", `The document of the application cannot be used: ${why}.`);
}
