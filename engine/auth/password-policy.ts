import type { Config } from "../config/config.ts";
import { ApiError, type FieldFault } from "../errors.ts";
import { isCommonPassword } from "./common-passwords.ts";

type CharacterClass = { readonly name: string; readonly pattern: RegExp };
type PolicyRules = { readonly minLength: number; readonly required: readonly CharacterClass[] };
export type PasswordPolicy = Config["passwordPolicy"];

const UPPER = { name: "an upper-case letter", pattern: /\p{Lu}/u };
const LOWER = { name: "a lower-case letter", pattern: /\p{Ll}/u };
const DIGIT = { name: "a digit", pattern: /\p{Nd}/u };
const SPECIAL = { name: "a special character", pattern: /[^\p{L}\p{N}]/u };

const POLICIES: Readonly<Record<PasswordPolicy, PolicyRules>> = {
  standard: { minLength: 8, required: [UPPER, LOWER, DIGIT] },
  strict: { minLength: 12, required: [UPPER, LOWER, DIGIT, SPECIAL] },
};

/** Long enough for any passphrase. */
const MAX_BYTES = 1024;

type PasswordCheck = {
  readonly policy: PasswordPolicy;
  readonly field: string;
  /** Words that others know about the user, such as the name; not allowed as the password. */
  readonly personalWords?: readonly (string | null | undefined)[];
};

/** Describes the policy to a user who chooses a password. */
export function describePolicy(policy: PasswordPolicy): string {
  const { minLength, required } = POLICIES[policy];
  return `At least ${minLength} characters, among them ${required.map(({ name }) => name).join(", ")}.`;
}

/** Throws if a new password does not meet the policy, with all faults. */
export function checkNewPassword(password: string, question: PasswordCheck): void {
  const faults = findPasswordFaults(password, question);
  if (faults.length > 0) throw validationError("This password is too easy to guess, or too long.", faults);
}

/** All faults of a new password. */
export function findPasswordFaults(
  password: string,
  { policy, field, personalWords: known = [] }: PasswordCheck,
): FieldFault[] {
  const { minLength, required } = POLICIES[policy];
  const missing = required.filter(({ pattern }) => !pattern.test(password)).map(({ name }) => name);
  const faults = [
    ...([...password].length < minLength ? [`Use at least ${minLength} characters.`] : []),
    ...(isTooLong(password) ? [tooLong] : []),
    ...(missing.length > 0 ? [`Use ${missing.join(", ")} as well.`] : []),
    ...(isPersonalWord(password, known) ? ["Use something else than your name or address."] : []),
    ...(isCommon(password) ? ["Many people use this password; choose one that is yours alone."] : []),
  ];
  return faults.map((message) => ({ field, message }));
}

/** Refuses a password that is too long before it is hashed. */
export function checkLength(password: string, field: string): void {
  if (isTooLong(password)) throw validationError("This password is too long.", [{ field, message: tooLong }]);
}

const tooLong = `Use at most ${MAX_BYTES} bytes.`;

function isTooLong(password: string): boolean {
  return Buffer.byteLength(password) > MAX_BYTES;
}

/** Passwords that are too long are not checked: normalizing thousands of combining accents takes seconds. */
function isCommon(password: string): boolean {
  return !isTooLong(password) && isCommonPassword(password);
}

function isPersonalWord(password: string, known: readonly (string | null | undefined)[]): boolean {
  return known.some((word) => word?.toLowerCase() === password.toLowerCase());
}

/** Some error formats contain only the message, so it includes the advice. */
function validationError(message: string, details: readonly FieldFault[]): ApiError {
  const advice = details.map((fault) => fault.message).join(" ");
  return new ApiError(400, "VALIDATION_ERROR", `${message} ${advice}`, { details });
}
