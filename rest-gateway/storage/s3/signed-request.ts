import aws4 from "aws4";
import type { GatewayRequest, MatchedRequest } from "#http";
import { s3Error } from "./s3-error.ts";
import { headerOf, S3_PREFIX } from "./s3-request.ts";
import { isSameSignature, type SignedPayload, signingKeyOf } from "./signed-payload.ts";

/** Finds the secrets that may have signed a request with this access key and session token. */
export type FindSecrets = (accessKeyId: string, sessionToken: string | null) => readonly string[];

/** The content of a valid signature. */
type SignedRequest = {
  readonly accessKeyId: string;
  readonly sessionToken: string | null;
  readonly payload: SignedPayload;
};

type SignatureParts = {
  readonly accessKeyId: string;
  readonly date: string;
  readonly region: string;
  readonly scope: string;
  readonly signedHeaders: readonly string[];
  readonly signature: string;
  readonly isPresigned: boolean;
};

export const ALGORITHM = "AWS4-HMAC-SHA256";
/** The maximum clock skew, the same as at S3: a captured request can be repeated for this long. */
const MAX_SKEW_MS = 15 * 60_000;
const LONGEST_PRESIGNED_SECONDS = 7 * 86_400;
const MAX_PARAMETERS = 100;
const DATE = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/;
const CREDENTIAL = /^([^/\s]{1,256})\/(\d{8})\/([\w-]{1,64})\/s3\/aws4_request$/;

/** Throws unless the request is signed by one of the secrets, now or within the lifetime of its address. */
export function verifySignedRequest(request: GatewayRequest, query: URLSearchParams, findSecrets: FindSecrets) {
  checkParameters(query);
  const parts = readSignature(request, query);
  checkTime(parts, query);
  checkSignedHeaders(request, parts);
  const sessionToken = headerOf(request, query, "x-amz-security-token");
  const secrets = findSecrets(parts.accessKeyId, sessionToken);
  const secret = secrets.find((each) => isSignedWith(each, request, query, parts));
  if (secret === undefined) {
    throw secrets.length === 0 ? s3Error("InvalidAccessKeyId") : s3Error("SignatureDoesNotMatch");
  }
  const { accessKeyId } = parts;
  return { accessKeyId, sessionToken, payload: readPayload(request, query, parts, secret) } satisfies SignedRequest;
}

/** Returns true if the headers or the address have a signature, which may be wrong. */
export function isSignedRequest({ headers, query }: MatchedRequest): boolean {
  return headers.authorization !== undefined || query.has("X-Amz-Algorithm");
}

/** Refuses parameters that the library does not sign: it signs the first value of a name, no empty names, and a thousand at most. */
function checkParameters(query: URLSearchParams): void {
  const names = [...query.keys()];
  const isPlain = names.length <= MAX_PARAMETERS && new Set(names).size === names.length && !names.includes("");
  if (!isPlain) throw s3Error("InvalidArgument", "Each parameter of the query must have a name, once.");
}

function readSignature({ headers }: GatewayRequest, query: URLSearchParams): SignatureParts {
  const { authorization } = headers;
  if (query.has("X-Amz-Algorithm")) {
    if (authorization !== undefined)
      throw s3Error("InvalidArgument", "Only one of Authorization and X-Amz-Algorithm is allowed.");
    return toParts({
      algorithm: query.get("X-Amz-Algorithm"),
      credential: query.get("X-Amz-Credential"),
      signedHeaders: query.get("X-Amz-SignedHeaders"),
      signature: query.get("X-Amz-Signature"),
      date: query.get("X-Amz-Date"),
      isPresigned: true,
    });
  }
  if (query.has("AWSAccessKeyId")) throw s3Error("InvalidRequest", `Sign the address with ${ALGORITHM}.`);
  if (authorization === undefined) throw s3Error("AccessDenied", "The request is not signed.");
  const [algorithm = "", ...rest] = authorization.split(" ");
  const fields = new Map(
    rest
      .join(" ")
      .split(",")
      .map((field) => field.trim().split("=", 2) as [string, string]),
  );
  const date = headers["x-amz-date"];
  return toParts({
    algorithm,
    credential: fields.get("Credential"),
    signedHeaders: fields.get("SignedHeaders"),
    signature: fields.get("Signature"),
    date: typeof date === "string" ? date : null,
    isPresigned: false,
  });
}

type SentSignature = Readonly<
  Record<"algorithm" | "credential" | "signedHeaders" | "signature" | "date", string | null | undefined>
> & { readonly isPresigned: boolean };

function toParts({
  algorithm,
  credential,
  signedHeaders,
  signature,
  date,
  isPresigned,
}: SentSignature): SignatureParts {
  if (algorithm !== ALGORITHM) throw s3Error("InvalidRequest", `Sign the request with ${ALGORITHM}.`);
  if (!signedHeaders || !/^[0-9a-f]{64}$/.test(signature ?? "")) throw s3Error("AuthorizationHeaderMalformed");
  return {
    ...parseCredential(credential ?? "", date ?? ""),
    isPresigned,
    date: date!,
    signature: signature!,
    signedHeaders: signedHeaders.split(";"),
  };
}

/** Parses the signer and the scope of a signature. */
export function parseCredential(credential: string, date: string) {
  const [, accessKeyId, day, region] = CREDENTIAL.exec(credential) ?? [];
  if (!accessKeyId || !day || !region) throw s3Error("AuthorizationHeaderMalformed");
  if (!DATE.test(date) || !date.startsWith(day))
    throw s3Error("AccessDenied", "X-Amz-Date must be a time like 20261124T120000Z, of the day in the credential.");
  return { accessKeyId, region, scope: `${date}\n${day}/${region}/s3/aws4_request` };
}

/** Parses a time, to milliseconds since 1970. */
export function parseSignedTime(date: string): number {
  const time = Date.parse(date.replace(DATE, "$1-$2-$3T$4:$5:$6Z"));
  if (Number.isNaN(time)) throw s3Error("AccessDenied", "X-Amz-Date is no time.");
  return time;
}

function checkTime({ date, isPresigned }: SignatureParts, query: URLSearchParams): void {
  const age = Date.now() - parseSignedTime(date);
  if (!isPresigned) {
    if (Math.abs(age) > MAX_SKEW_MS) throw s3Error("RequestTimeTooSkewed");
    return;
  }
  const seconds = query.get("X-Amz-Expires") ?? "";
  if (!/^\d{1,6}$/.test(seconds) || Number(seconds) < 1 || Number(seconds) > LONGEST_PRESIGNED_SECONDS)
    throw s3Error("AuthorizationQueryParametersError", "X-Amz-Expires must be from 1 to 604800 seconds.");
  if (age < -MAX_SKEW_MS) throw s3Error("AccessDenied", "Request is not yet valid");
  if (age > Number(seconds) * 1000) throw s3Error("AccessDenied", "Request has expired");
}

/** Requires that headers with a meaning to S3 are signed, so that nobody can add one to an address that another caller has signed. */
function checkSignedHeaders({ headers }: GatewayRequest, { signedHeaders }: SignatureParts): void {
  const needed = ["host", ...Object.keys(headers).filter((name) => name.startsWith("x-amz-"))];
  const missing = needed.filter((name) => !signedHeaders.includes(name));
  if (missing.length > 0) throw s3Error("AccessDenied", `Headers are not signed: ${missing.join(", ")}`);
}

/** The target of a request, by the header `Host` and the path. */
type SignedTarget = { readonly host: string; readonly path: string };

/** Returns the target of the request, and that which `s3cmd` signs, which counts the path of an endpoint as part of the host. */
function targetsOf({ headers: { host = "" }, path }: GatewayRequest): readonly SignedTarget[] {
  const rest = path.slice(S3_PREFIX.length) || "/";
  return [
    { host, path },
    { host: `${host}${S3_PREFIX}`, path: rest },
  ];
}

function isSignedWith(secret: string, request: GatewayRequest, query: URLSearchParams, parts: SignatureParts): boolean {
  const names = parts.signedHeaders.filter((name) => typeof request.headers[name] === "string");
  if (names.length !== parts.signedHeaders.length) return false;
  return targetsOf(request).some((target) => {
    const headers = Object.fromEntries(names.map((name) => [name, request.headers[name] as string]));
    const signature = signatureOf({ ...headers, host: target.host }, target.path, { secret, request, query, parts });
    return isSameSignature(signature, parts.signature);
  });
}

type Signing = {
  readonly secret: string;
  readonly request: GatewayRequest;
  readonly query: URLSearchParams;
  readonly parts: SignatureParts;
};

function signatureOf(
  headers: Readonly<Record<string, string>>,
  path: string,
  { secret, request, query, parts }: Signing,
): string {
  const signed = new URLSearchParams(query);
  signed.delete("X-Amz-Signature");
  const options = {
    ...{ method: request.method, service: "s3", region: parts.region, signQuery: parts.isPresigned },
    path: signed.size === 0 ? path : `${path}?${signed}`,
    headers,
    doNotModifyHeaders: true,
    // Clients also sign headers that the library leaves out by default.
    extraHeadersToInclude: Object.fromEntries(Object.keys(headers).map((name) => [name, true])),
  };
  const signer = new aws4.RequestSigner(options, { accessKeyId: parts.accessKeyId, secretAccessKey: secret });
  signer.datetime = parts.date;
  return signatureBy(signer);
}

function signatureBy(signer: aws4.RequestSigner): string {
  try {
    return signer.signature();
  } catch (error) {
    // The path is not UTF-8.
    throw s3Error("InvalidURI", undefined, { cause: error });
  }
}

function readPayload(
  request: GatewayRequest,
  query: URLSearchParams,
  parts: SignatureParts,
  secret: string,
): SignedPayload {
  const sent = headerOf(request, query, "x-amz-content-sha256");
  if (sent === null) {
    if (parts.isPresigned) return { kind: "unsigned" };
    throw s3Error("InvalidRequest", "Missing required header for this request: x-amz-content-sha256");
  }
  if (/^[0-9a-f]{64}$/i.test(sent)) return { kind: "digest", sha256: sent.toLowerCase() };
  switch (sent) {
    case "UNSIGNED-PAYLOAD":
      return { kind: "unsigned" };
    case "STREAMING-UNSIGNED-PAYLOAD-TRAILER":
      return { kind: "chunks", signature: null };
    case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD":
    case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER": {
      const { scope, signature } = parts;
      return { kind: "chunks", signature: { key: signingKeyOf(secret, scope), scope, seed: signature } };
    }
    default:
      if (sent.startsWith("STREAMING-AWS4-ECDSA-"))
        throw s3Error("NotImplemented", `Bodies are not signed by ${sent.slice(0, 100)} here.`);
      throw s3Error("InvalidArgument", "x-amz-content-sha256 must be the name of a signature, or a SHA-256.");
  }
}
