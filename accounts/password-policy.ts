import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "#config";
import { ApiError, type FieldError } from "#runtime";

type CharacterClass = { readonly name: string; readonly pattern: RegExp };
type PolicyRules = {
  readonly minLength: number;
  readonly required: readonly CharacterClass[];
  /** True if common passwords and the user's own name are accepted. */
  readonly acceptsGuessable?: boolean;
};
export type PasswordPolicy = Config["passwordPolicy"];

const UPPER = { name: "an upper-case letter", pattern: /\p{Lu}/u };
const LOWER = { name: "a lower-case letter", pattern: /\p{Ll}/u };
const DIGIT = { name: "a digit", pattern: /\p{Nd}/u };
const SPECIAL = { name: "a special character", pattern: /[^\p{L}\p{N}]/u };

const POLICIES: Readonly<Record<PasswordPolicy, PolicyRules>> = {
  standard: { minLength: 8, required: [UPPER, LOWER, DIGIT] },
  minimal: { minLength: 6, required: [], acceptsGuessable: true },
  strict: { minLength: 12, required: [UPPER, LOWER, DIGIT, SPECIAL] },
};

/** The length allows any passphrase. */
const MAX_BYTES = 1024;

type PolicyCheck = {
  readonly policy: PasswordPolicy;
  readonly field: string;
  /** Words that others know about the user, such as the name; they are not allowed as the password. */
  readonly personalWords?: readonly (string | null | undefined)[];
};

/** Describes the policy to a user who chooses a password. */
export function describePolicy(policy: PasswordPolicy): string {
  const { minLength, required } = POLICIES[policy];
  const among = required.length === 0 ? "" : `, among them ${required.map(({ name }) => name).join(", ")}`;
  return `At least ${minLength} characters${among}.`;
}

/** Throws an error with all faults if a new password does not meet the policy. */
export function checkNewPassword(password: string, check: PolicyCheck): void {
  const faults = findPasswordFaults(password, check);
  if (faults.length > 0) throw passwordRejected(faults);
}

export function passwordRejected(faults: readonly FieldError[]): ApiError {
  return validationError("This password is too easy to guess, or too long.", faults);
}

/** All faults of a new password. */
export function findPasswordFaults(
  password: string,
  { policy, field, personalWords: words = [] }: PolicyCheck,
): FieldError[] {
  const { minLength, required, acceptsGuessable = false } = POLICIES[policy];
  const missing = required.filter(({ pattern }) => !pattern.test(password)).map(({ name }) => name);
  const faults = [
    ...([...password].length < minLength ? [`Use at least ${minLength} characters.`] : []),
    ...(isTooLong(password) ? [TOO_LONG] : []),
    ...(missing.length > 0 ? [`Use ${missing.join(", ")} as well.`] : []),
    ...(!acceptsGuessable && isPersonalWord(password, words) ? ["Use something else than your name or address."] : []),
    ...(!acceptsGuessable && isCommon(password)
      ? ["Many people use this password; choose one that is yours alone."]
      : []),
  ];
  return faults.map((message) => ({ field, message }));
}

/** Refuses a password that is too long before it is hashed. */
export function checkLength(password: string, field: string): void {
  if (isTooLong(password)) throw validationError("This password is too long.", [{ field, message: TOO_LONG }]);
}

const TOO_LONG = `Use at most ${MAX_BYTES} bytes.`;

function isTooLong(password: string): boolean {
  return Buffer.byteLength(password) > MAX_BYTES;
}

/** Passwords that are too long are not checked: normalizing thousands of combining accents takes seconds. */
function isCommon(password: string): boolean {
  return !isTooLong(password) && isCommonPassword(password);
}

function isPersonalWord(password: string, personalWords: readonly (string | null | undefined)[]): boolean {
  return personalWords.some((word) => word?.toLowerCase() === password.toLowerCase());
}

/** Some error formats contain only the message, so it includes the advice. */
function validationError(message: string, details: readonly FieldError[]): ApiError {
  const advice = details.map((fault) => fault.message).join(" ");
  return new ApiError("invalid", "VALIDATION_ERROR", `${message} ${advice}`, { details });
}

/** More digits and signs than this around a word make a password uncommon. */
const MAX_DECORATION = 10;
const MIN_WORD_LENGTH = 4;
const SUBSTITUTIONS: Readonly<Record<string, string>> = {
  "0": "o",
  "3": "e",
  "4": "a",
  "5": "s",
  "7": "t",
  "@": "a",
  $: "s",
};

let commonWords: ReadonlySet<string> | null = null;

/** True if the password is a common word or pattern, with any capitalization, leetspeak and added digits or signs. */
export function isCommonPassword(password: string): boolean {
  // The words and keyboard patterns of common passwords.
  commonWords ??= new Set(
    readFileSync(join(import.meta.dirname, "common-passwords.txt"), "utf8")
      .trim()
      .split(/\s+/),
  );
  const lower = password.normalize("NFKC").toLowerCase();
  const candidates = [lower, matchOrEmpty(/^.*[\p{L}\d]/su, lower), ...stemsOf(lower)];
  return candidates.some((candidate) => commonWords!.has(candidate) || commonWords!.has(halfOf(candidate)));
}

/** `p@ssw0rd2024!` -> `password`; a 1 is read as i and as l. */
function stemsOf(lower: string): string[] {
  const stem = matchOrEmpty(/\p{L}(?:.*\p{L})?/su, lower);
  if (stem.length < MIN_WORD_LENGTH || lower.length - stem.length > MAX_DECORATION) return [];
  const plain = stem.replace(/[03457@$]/g, (sign) => SUBSTITUTIONS[sign]!);
  return [stem, plain.replace(/[1!]/g, "i"), plain.replace(/[1!]/g, "l")];
}

/** The patterns are greedy, so that they take linear time for input of thousands of characters. */
function matchOrEmpty(pattern: RegExp, text: string): string {
  return pattern.exec(text)?.[0] ?? "";
}

/** `testtest` -> `test` */
function halfOf(word: string): string {
  const half = word.slice(0, word.length / 2);
  return half + half === word ? half : word;
}
