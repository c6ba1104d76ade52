import { errorHeaders, type GatewayRequest, type GatewayResponse, HttpError } from "#http";
import { writeXml } from "./write-xml.ts";

/** The codes of S3, with their status and message. */
const KNOWN = {
  AccessDenied: [403, "Access Denied"],
  AuthorizationHeaderMalformed: [400, "The authorization header that you provided is not valid."],
  AuthorizationQueryParametersError: [400, "The query parameters of the signature are not valid."],
  BadDigest: [400, "The digest or checksum that you sent does not match the content."],
  BucketAlreadyExists: [409, "The requested bucket name is not available."],
  BucketNotEmpty: [409, "The bucket you tried to delete is not empty."],
  EntityTooLarge: [400, "Your proposed upload exceeds the maximum allowed object size."],
  EntityTooSmall: [400, "Your proposed upload is smaller than the minimum allowed object size."],
  ExpiredToken: [400, "The provided token has expired."],
  IncompleteBody: [400, "The request body terminated unexpectedly"],
  InternalError: [500, "We encountered an internal error. Please try again."],
  InvalidAccessKeyId: [403, "The access key id you provided does not exist in our records."],
  InvalidArgument: [400, "Invalid Argument"],
  InvalidBucketName: [400, "The specified bucket is not valid."],
  InvalidDigest: [400, "The Content-MD5 or checksum value that you specified is not valid."],
  InvalidPart: [400, "One or more of the specified parts could not be found."],
  InvalidPartOrder: [400, "The list of parts was not in ascending order."],
  InvalidPolicyDocument: [
    400,
    "The content of the form does not meet the conditions specified in the policy document.",
  ],
  InvalidRange: [416, "The requested range cannot be satisfied."],
  InvalidRequest: [400, "Invalid Request"],
  InvalidToken: [400, "The provided token is malformed or otherwise not valid."],
  InvalidURI: [400, "The specified URI couldn't be parsed."],
  KeyTooLongError: [400, "Your key is too long, or has characters or segments that are not allowed."],
  MalformedPOSTRequest: [400, "The body of your POST request is not well-formed multipart/form-data."],
  MalformedTrailerError: [
    400,
    "The request contained trailing data that was not well-formed or did not conform to our published schema.",
  ],
  MalformedXML: [
    400,
    "The XML that you provided was not well formed or did not validate against our published schema.",
  ],
  MetadataTooLarge: [400, "Your metadata headers exceed the maximum allowed metadata size."],
  MethodNotAllowed: [405, "The specified method is not allowed against this resource."],
  MissingContentLength: [411, "You must provide the Content-Length HTTP header."],
  NoSuchBucket: [404, "The specified bucket does not exist."],
  NoSuchKey: [404, "The specified key does not exist."],
  NoSuchUpload: [404, "The specified multipart upload does not exist."],
  NotImplemented: [501, "A header or parameter that you provided implies functionality that is not implemented."],
  PreconditionFailed: [412, "At least one of the preconditions that you specified did not hold."],
  QuotaExceeded: [403, "The bucket is full."],
  RequestTimeTooSkewed: [403, "The difference between the request time and the server's time is too large."],
  SignatureDoesNotMatch: [403, "The request signature we calculated does not match the signature you provided."],
  SlowDown: [503, "Please reduce your request rate."],
  XAmzContentSHA256Mismatch: [400, "The provided 'x-amz-content-sha256' header does not match what was computed."],
} as const satisfies Record<string, readonly [status: number, message: string]>;

type S3ErrorCode = keyof typeof KNOWN;

export function s3Error(code: S3ErrorCode, message?: string, options: { cause?: unknown } = {}): HttpError {
  const [status, usual] = KNOWN[code];
  return new HttpError(status, code, message ?? usual, options);
}

/** Codes of the storage interface that S3 has under another name. */
const OF_STORAGE: Readonly<Record<string, S3ErrorCode>> = {
  InvalidKey: "KeyTooLongError",
  InvalidMimeType: "InvalidRequest",
  InvalidSignature: "SignatureDoesNotMatch",
  InvalidJWT: "InvalidToken",
  KeyAlreadyExists: "PreconditionFailed",
  ResourceNotEmpty: "BucketNotEmpty",
  StorageFull: "SlowDown",
  TOKEN_EXPIRED: "ExpiredToken",
  TooManyUploads: "SlowDown",
};

export function toS3ErrorResponse(error: HttpError, request: GatewayRequest): GatewayResponse {
  const { status, code, message } = toS3Error(error);
  const headers = { "Cache-Control": "no-store", "Content-Type": "application/xml", ...errorHeaders(error) };
  if (request.method === "HEAD") return { status, headers, body: null };
  const about = { Code: code, Message: message, Resource: request.path, RequestId: request.id };
  return { status, headers, body: writeXml("Error", about, { hasNamespace: false }) };
}

function toS3Error({ status, code, message }: HttpError): Pick<HttpError, "status" | "code" | "message"> {
  const own = OF_STORAGE[code] ?? (Object.hasOwn(KNOWN, code) ? (code as S3ErrorCode) : null);
  if (own) return { status: KNOWN[own][0], code: own, message };
  if (status === 401) return { status: 400, code: "InvalidToken", message };
  if (status === 429 || status === 503) return { status: 503, code: "SlowDown", message };
  return { status, code: status >= 500 ? "InternalError" : "InvalidRequest", message };
}
