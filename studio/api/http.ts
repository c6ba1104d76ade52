/** An error response of the service, or no response. */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  /** 0 if there was no response; 401 if there was no token, or a refused one, on every interface. */
  readonly status: number;
  readonly code: string;
  readonly hint: string | null;
  readonly details: string | null;

  constructor(status: number, body: ErrorBody, cause?: unknown) {
    super(body.message, { cause });
    this.status = status;
    this.code = body.code;
    this.hint = body.hint ?? null;
    this.details = body.details ?? null;
  }
}

type ErrorBody = {
  readonly code: string;
  readonly message: string;
  readonly hint?: string | null;
  readonly details?: string | null;
};

export type HttpRequest = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body: an object is sent as JSON; a text or a file is sent unchanged. */
  readonly body?: unknown;
  readonly signal?: AbortSignal;
};

export type SentRequest = HttpRequest & {
  /** The token; null sends no credentials. */
  readonly token: string | null;
  /** True only if a session is made from the cookie of the sign-in pages. */
  readonly withCookie?: boolean;
};

/** Paths that require the token as an API key too. */
const KEYED = /^\/(rest|auth|realtime|storage)\/v1\//;

/** Sends a request to this service. Throws ServiceError for a status of 400 or more, and AbortError when aborted. */
export async function sendRequest(path: string, request: SentRequest): Promise<Response> {
  const response = await fetchResponse(path, request);
  if (!response.ok) throw await readError(response);
  return response;
}

/** Works like `sendRequest`, but returns responses of any status. */
export async function fetchResponse(path: string, request: SentRequest): Promise<Response> {
  const { method = "GET", body, signal, token, withCookie = false } = request;
  const headers = new Headers(request.headers);
  const isPlain = body === undefined || typeof body === "string" || body instanceof Blob;
  if (!isPlain && !headers.has("Content-Type")) headers.set("Content-Type", "application/json");
  if (token !== null && !headers.has("Authorization")) headers.set("Authorization", `Bearer ${token}`);
  if (token !== null && KEYED.test(path) && !headers.has("apikey")) headers.set("apikey", token);
  const options: RequestInit = { method, headers, credentials: withCookie ? "same-origin" : "omit", cache: "no-store" };
  if (body !== undefined) options.body = isPlain ? body : JSON.stringify(body);
  if (signal) options.signal = signal;
  try {
    return await fetch(path, options);
  } catch (error) {
    if (isAborted(error)) throw error;
    throw new ServiceError(0, { code: "NO_RESPONSE", message: "The service does not answer." }, error);
  }
}

export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Reads the error formats of all interfaces: conventional, PostgREST's and that of `/auth/v1`. */
async function readError(response: Response): Promise<ServiceError> {
  const text = await response.text();
  const body = parseObject(text);
  const inner = typeof body.error === "object" && body.error !== null ? (body.error as Record<string, unknown>) : body;
  // Refused tokens have status 400 at /storage/v1, as at Supabase.
  const isRefusedToken = response.status === 400 && response.headers.has("WWW-Authenticate");
  return new ServiceError(isRefusedToken ? 401 : response.status, {
    code: textOf(inner.code) ?? textOf(inner.error_code) ?? textOf(body.error) ?? String(response.status),
    message: textOf(inner.message) ?? textOf(inner.msg) ?? textOf(inner.error_description) ?? response.statusText,
    hint: textOf(inner.hint),
    details: fieldTexts(inner.details) ?? textOf(inner.details),
  });
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** The messages for invalid fields, one per line; null if there are none. */
function fieldTexts(details: unknown): string | null {
  if (!Array.isArray(details) || details.length === 0 || !details.every(isFieldFault)) return null;
  return details.map(({ field, message }) => `${field}: ${message}`).join("\n");
}

function isFieldFault(value: unknown): value is { readonly field: string; readonly message: string } {
  return typeof value === "object" && value !== null && "field" in value && "message" in value;
}

function textOf(value: unknown): string | null {
  if (value === null || value === undefined || (Array.isArray(value) && value.length === 0)) return null;
  return typeof value === "string" ? value : JSON.stringify(value);
}
