import { isJsonObject } from "#runtime/json";
import type { FormFields } from "./post-form.ts";
import { s3Error } from "./s3-error.ts";
import { isSameSignature, signText } from "./signed-payload.ts";
import { ALGORITHM, type FindSecrets, parseCredential, parseSignedTime } from "./signed-request.ts";

/** The longest time after the policy's time: the same as for a presigned address. */
const LONGEST_MS = 7 * 86_400_000;
const MAX_SKEW_MS = 15 * 60_000;

/** Throws unless the policy of the form is signed by one of the secrets. Returns the session token. */
export function verifySignedForm(fields: FormFields, findSecrets: FindSecrets): string | null {
  const field = (name: string) => fields.get(name) ?? "";
  if (!fields.has("policy")) throw s3Error("AccessDenied", "The form has no policy.");
  if (field("x-amz-algorithm") !== ALGORITHM) throw s3Error("InvalidRequest", `Sign the policy with ${ALGORITHM}.`);
  const { accessKeyId, scope } = parseCredential(field("x-amz-credential"), field("x-amz-date"));
  const age = Date.now() - parseSignedTime(field("x-amz-date"));
  if (age > LONGEST_MS || age < -MAX_SKEW_MS) throw s3Error("AccessDenied", "The policy is too old, or not valid yet.");
  const sessionToken = fields.get("x-amz-security-token") ?? null;
  const secrets = findSecrets(accessKeyId, sessionToken);
  if (secrets.length === 0) throw s3Error("InvalidAccessKeyId");
  const isSigned = secrets.some((secret) =>
    isSameSignature(signText(field("policy"), secret, scope), field("x-amz-signature")),
  );
  if (!isSigned) throw s3Error("SignatureDoesNotMatch");
  return sessionToken;
}

/** Fields that no condition must name: those of the signature, which the signature covers or verifies. */
const UNCONDITIONED: ReadonlySet<string> = new Set([
  ...["policy", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-security-token", "x-amz-signature"],
]);

export type ByteRange = { readonly min: number; readonly max: number };

/** Throws unless the form meets its policy, which must not have expired. Returns the permitted sizes of the file. */
export function checkPolicy(fields: FormFields, bucket: string): ByteRange {
  const { expiration, conditions } = readPolicy(fields.get("policy") ?? "");
  const until = Date.parse(String(expiration));
  if (Number.isNaN(until)) throw s3Error("InvalidPolicyDocument", "The policy has no expiration.");
  if (until < Date.now()) throw refusal("Policy expired.");
  const sent = new Map([...fields, ["bucket", bucket]]);
  const covered = new Set<string>();
  let range: ByteRange = { min: 0, max: Number.POSITIVE_INFINITY };
  for (const condition of conditions) {
    const { operator, name, value } = readCondition(condition);
    if (operator === "content-length-range") {
      range = readRange(name, value);
      continue;
    }
    const found = sent.get(name);
    const holds = operator === "eq" ? found === value : found?.startsWith(String(value));
    if (!holds) throw refusal(`Policy Condition failed: ["${operator}", "$${name}", "${value}"]`);
    covered.add(name);
  }
  const extra = [...sent.keys()].find(
    (name) => !covered.has(name) && !UNCONDITIONED.has(name) && !name.startsWith("x-ignore-"),
  );
  if (extra !== undefined) throw refusal(`Extra input fields: ${extra}`);
  return range;
}

function refusal(reason: string) {
  return s3Error("AccessDenied", `Invalid according to Policy: ${reason}`);
}

function readPolicy(encoded: string): { readonly expiration: unknown; readonly conditions: readonly unknown[] } {
  const policy = parseJson(Buffer.from(encoded, "base64").toString("utf8"));
  if (!isJsonObject(policy) || !Array.isArray(policy.conditions)) throw s3Error("InvalidPolicyDocument");
  return { expiration: policy.expiration, conditions: policy.conditions };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw s3Error("InvalidPolicyDocument", undefined, { cause: error });
  }
}

/**
 * Reads `{ "acl": "x" }`, `["eq"
 * "starts-with", "$key", "x"]` or `["content-length-range", 0, 10]`.
 */
function readCondition(condition: unknown) {
  if (isJsonObject(condition)) {
    const [[name, value] = ["", null], ...others] = Object.entries(condition);
    if (typeof value !== "string" || others.length > 0) throw s3Error("InvalidPolicyDocument");
    return { operator: "eq", name: name.toLowerCase(), value };
  }
  const [operator, target, value] = Array.isArray(condition) ? condition : [];
  if (operator === "content-length-range") return { operator, name: String(target), value: String(value) };
  const isKnown = (operator === "eq" || operator === "starts-with") && /^\$./.test(String(target));
  if (!isKnown || typeof value !== "string") throw s3Error("InvalidPolicyDocument");
  return { operator, name: String(target).slice(1).toLowerCase(), value };
}

function readRange(min: string, max: string): ByteRange {
  if (!/^\d{1,15}$/.test(min) || !/^\d{1,15}$/.test(max)) throw s3Error("InvalidPolicyDocument");
  return { min: Number(min), max: Number(max) };
}
