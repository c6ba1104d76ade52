import type { Config } from "../config/config.ts";
import { ApiError, type FieldFault } from "../errors.ts";
import { isCommonPassword } from "./common-passwords.ts";

type Kind = { readonly name: string; readonly pattern: RegExp };
type Policy = { readonly fewest: number; readonly kinds: readonly Kind[] };
export type PasswordPolicy = Config["passwordPolicy"];

const UPPER = { name: "an upper-case letter", pattern: /\p{Lu}/u };
const LOWER = { name: "a lower-case letter", pattern: /\p{Ll}/u };
const DIGIT = { name: "a digit", pattern: /\p{Nd}/u };
const SPECIAL = { name: "a special character", pattern: /[^\p{L}\p{N}]/u };

const POLICIES: Readonly<Record<PasswordPolicy, Policy>> = {
  standard: { fewest: 8, kinds: [UPPER, LOWER, DIGIT] },
  strict: { fewest: 12, kinds: [UPPER, LOWER, DIGIT, SPECIAL] },
};

/** A passphrase of any sensible length; argon2 reads all of it. */
const MOST_BYTES = 1024;

type Question = {
  readonly policy: PasswordPolicy;
  readonly field: string;
  /** What others know of the user: no password. */
  readonly known?: readonly (string | null | undefined)[];
};

/** In words, for who is about to choose one. */
export function describePolicy(policy: PasswordPolicy): string {
  const { fewest, kinds } = POLICIES[policy];
  return `At least ${fewest} characters, among them ${kinds.map(({ name }) => name).join(", ")}.`;
}

/** Refuses a new password that is too easy, telling all that it lacks. */
export function checkNewPassword(password: string, question: Question): void {
  const faults = newPasswordFaults(password, question);
  if (faults.length > 0) throw refusal("This password is too easy to guess, or too long.", faults);
}

/** All that a new password lacks. */
export function newPasswordFaults(password: string, { policy, field, known = [] }: Question): FieldFault[] {
  const { fewest, kinds } = POLICIES[policy];
  const missing = kinds.filter(({ pattern }) => !pattern.test(password)).map(({ name }) => name);
  const faults = [
    ...([...password].length < fewest ? [`Use at least ${fewest} characters.`] : []),
    ...(isTooLong(password) ? [tooLong] : []),
    ...(missing.length > 0 ? [`Use ${missing.join(", ")} as well.`] : []),
    ...(isKnown(password, known) ? ["Use something else than your name or address."] : []),
    ...(isCommon(password) ? ["Many people use this password; choose one that is yours alone."] : []),
  ];
  return faults.map((message) => ({ field, message }));
}

/** A password that nobody can have is not worth hashing. */
export function checkLength(password: string, field: string): void {
  if (isTooLong(password)) throw refusal("This password is too long.", [{ field, message: tooLong }]);
}

const tooLong = `Use at most ${MOST_BYTES} bytes.`;

function isTooLong(password: string): boolean {
  return Buffer.byteLength(password) > MOST_BYTES;
}

/** What is too long is not looked at: to put thousands of accents in order takes seconds. */
function isCommon(password: string): boolean {
  return !isTooLong(password) && isCommonPassword(password);
}

function isKnown(password: string, known: readonly (string | null | undefined)[]): boolean {
  return known.some((word) => word?.toLowerCase() === password.toLowerCase());
}

/** Some shapes of an error have its message alone: it says what to do. */
function refusal(message: string, details: readonly FieldFault[]): ApiError {
  const advice = details.map((fault) => fault.message).join(" ");
  return new ApiError(400, "VALIDATION_ERROR", `${message} ${advice}`, { details });
}
